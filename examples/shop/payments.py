"""What a user wrote is sorted before it is paid for: one call, and nine attempts behind it."""

import openai
from tenacity import retry, stop_after_attempt, wait_random_exponential

client = openai.OpenAI()


@retry(stop=stop_after_attempt(3), wait=wait_random_exponential(max=10))
def classify(text: str) -> object:
    """Three attempts here, and three by the client for each of them."""
    return client.responses.create(model="small", input=text)
