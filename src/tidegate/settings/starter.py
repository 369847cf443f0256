"""What does a newcomer see who asks for a file to start from?

Two services, one call with retries, one thing that goes wrong: small enough to understand at first
sight, and a real storm to `check`. The figures are those of the retry storm in the benchmarks: 8
workers of 40 ms serve 200 requests a second, and 140 come.
"""

__all__ = ["starter"]

_TEXT = """\
# Two services, and what may go wrong. Put your own names and numbers here.
tidegate: 1                    # version of this format

clients:
  users:
    rate: 140/s                # requests that people send
    calls:
      shop: {timeout: 5s}      # who waits longer has left

services:
  shop:
    workers: 200               # threads; one is held until the answer
    time: 5ms                  # own work of one request, without its calls
    calls:
      stock:                   # calls the service of this name
        timeout: 500ms         # of one attempt
        attempts: 4            # tries in all, the first included
  stock:
    workers: 8                 # 8 at a time, 40 ms each: 200 requests a second
    time: 40ms

triggers:
  slow stock: {service: stock, slowdown: 3x, for: 20s}

# What you do not know can stay open: write a range, as `time: 10ms..50ms`, or nothing at all, as
# `workers:`. What is not written is not there: no queue limit, no retry budget, no breaker.
"""


def starter() -> str:
    """The text of a system file to start from."""
    return _TEXT
