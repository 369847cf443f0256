"""How does one test code that is guarded, without waiting and without a dependency?

    from tidegate.testing import instant, scripted

    with instant() as clock:                       # no wait takes any time
        stub = scripted(ConnectionError(), 42)     # fails, then answers
        assert licences.call(stub.call) == 42
        assert len(stub.sent) == 2

`run` is `asyncio.run` in virtual time, `capture` notes changes of state, `refusing` makes a guard
refuse, and `tidegate.testing.fixtures` has the same for pytest.
"""

from tidegate.testing.clock import ManualClock, instant
from tidegate.testing.loop import VirtualLoop, run
from tidegate.testing.scripts import Scripted, Sent, after, scripted
from tidegate.testing.watching import Captured, Change, capture, refusing

__all__ = [
    "Captured",
    "Change",
    "ManualClock",
    "Scripted",
    "Sent",
    "VirtualLoop",
    "after",
    "capture",
    "instant",
    "refusing",
    "run",
    "scripted",
]
