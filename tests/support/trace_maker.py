"""Spans of a known system, so that a test can ask whether the system is found again.

There are no queues: every request takes its own time and waits for its calls. Failures are drawn,
timeouts follow from the times, retries from the settings.
"""

from random import Random

from tidegate.analysis.ingest.span import NO_RESEND, Ending, Kind, Resource, Span
from tidegate.settings.system import Call, Service, System, Time
from tidegate.units import SECOND

EPOCH = 1_700_000_000 * SECOND


def draw(time: Time | None, rng: Random) -> int:
    """A duration of this kind, in nanoseconds."""
    if time is None:
        return 1000
    if time.constant is not None:
        return time.constant
    if time.mean is not None:
        return round(rng.expovariate(1 / time.mean))
    assert time.median is not None
    assert time.p99 is not None
    sigma = (time.p99 / time.median) ** (1 / 2.326)
    return round(time.median * sigma ** rng.gauss(0, 1))


class TraceMaker:
    """Makes all spans of `seconds` of a system's life.

    `leaves` leave no spans themselves; `counted` writes `http.request.resend_count`; `slow` is the
    chance that a service's own time is 100 times longer, `broken` that it fails.
    """

    def __init__(
        self,
        system: System,
        *,
        seed: int = 1,
        leaves: tuple[str, ...] = (),
        counted: bool = False,
        slow: dict[str, float] | None = None,
        broken: dict[str, float] | None = None,
    ) -> None:
        self.system = system
        self.rng = Random(seed)
        self.leaves = leaves
        self.counted = counted
        self.slow = slow or {}
        self.broken = broken or {}
        self.spans: list[Span] = []
        self.instances = {
            name: [Resource(name, f"{name}-{n}") for n in range(service.replicas)]
            for name, service in system.services.items()
        }

    def run(self, seconds: float) -> list[Span]:
        for client in self.system.clients.values():
            assert client.rate is not None
            now = 0.0
            while (now := now + self.rng.expovariate(client.rate)) < seconds:
                for name, call in client.calls.items():
                    start = EPOCH + round(now * SECOND)
                    self.serve(self.system.target_of(name, call), start, self._id(128), 0)
        return self.spans

    def serve(self, name: str, start: int, trace: int, parent: int) -> tuple[int, Ending]:
        """One request in a service: its span and all below it. Gives its duration and ending."""
        service = self.system.services[name]
        own = draw(service.time, self.rng)
        if self.rng.random() < self.slow.get(name, 0):
            own *= 100
        ending = Ending.FAILED if self.rng.random() < self.broken.get(name, 0) else Ending.OK
        me = self._id(64)
        resource = self.rng.choice(self.instances[name])
        now = start + own
        if ending is Ending.OK:
            now, ending = self._calls(service, resource, now, trace, me)
        if name not in self.leaves:
            self.spans.append(
                Span(
                    trace=trace,
                    id=me,
                    parent=parent,
                    resource=resource,
                    name=f"GET /{name}",
                    kind=Kind.SERVER,
                    start=start,
                    duration=now - start,
                    ending=ending,
                )
            )
        return now - start, ending

    def _calls(
        self, service: Service, resource: Resource, now: int, trace: int, me: int
    ) -> tuple[int, Ending]:
        together = end = now
        for name, call in service.calls.items():
            count = int(call.per_request) + (self.rng.random() < call.per_request % 1)
            for _ in range(count):
                begin = together if service.parallel else end
                done, ending = self._call(name, call, resource, begin, trace, me)
                end = max(end, done)
                if ending is not Ending.OK and not call.optional:
                    return end, Ending.FAILED
        return end, Ending.OK

    def _call(
        self, name: str, call: Call, resource: Resource, now: int, trace: int, parent: int
    ) -> tuple[int, Ending]:
        ending = Ending.OK
        target = self.system.target_of(name, call)
        for attempt in range(call.tries):
            if attempt and call.backoff is not None:
                now += self._wait(call, attempt)
            me = self._id(64)
            length, ending = self.serve(target, now, trace, me)
            if call.timeout is not None and length > call.timeout:
                length, ending = call.timeout + 300_000, Ending.BROKEN
            counts = self.counted and attempt > 0
            self.spans.append(
                Span(
                    trace=trace,
                    id=me,
                    parent=parent,
                    resource=resource,
                    name=f"GET /{target}",
                    kind=Kind.CLIENT,
                    start=now,
                    duration=length,
                    ending=ending,
                    peer=target,
                    resend=attempt if counts else NO_RESEND,
                )
            )
            now += length
            reason = "timeout" if ending is Ending.BROKEN else "failure"
            if ending is Ending.OK or reason not in call.retry_on:
                break
        return now, ending

    def _wait(self, call: Call, attempt: int) -> int:
        assert call.backoff is not None
        full = call.backoff.base * call.backoff.factor ** (attempt - 1)
        low = {"full": 0.0, "equal": 0.5, "none": 1.0}[call.backoff.jitter]
        return round(full * self.rng.uniform(low, 1))

    def _id(self, bits: int) -> int:
        return self.rng.getrandbits(bits) | 1
