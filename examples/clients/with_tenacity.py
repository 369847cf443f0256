"""Keep the loops of tenacity and stamina, and let a guard say when to stop.

python examples/clients/with_tenacity.py
"""

import stamina
import tenacity

import tidegate
from tidegate.adapters.stamina import retry_within
from tidegate.adapters.tenacity import retry_if_worth_it, stop_when_spent, wait_as_asked

licences = tidegate.guard("licences", timeout=0.5)
sent = 0


@tenacity.retry(
    retry=retry_if_worth_it(licences),
    stop=tenacity.stop_after_attempt(4) | stop_when_spent(licences),
    wait=wait_as_asked(tenacity.wait_random_exponential(multiplier=0.001, max=0.002)),
    reraise=True,
)
@licences.options(attempts=1)
def by_tenacity() -> None:
    """A call to something that is down."""
    global sent
    sent += 1
    raise ConnectionError


@stamina.retry(on=retry_within(licences), attempts=4, wait_initial=0.001, wait_jitter=0.001)
@licences.options(attempts=1)
def by_stamina() -> None:
    """The same, with the other loop and the same guard."""
    global sent
    sent += 1
    raise ConnectionError


def main() -> str:
    """Two hundred calls of up to four tries each."""
    for call in (by_tenacity, by_stamina) * 100:
        try:
            call()
        except (ConnectionError, tidegate.Rejected):
            pass
    return f"200 calls, {sent} sent"


if __name__ == "__main__":
    print(main())
