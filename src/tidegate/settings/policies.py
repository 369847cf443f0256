"""What can be set on each policy, with its default and the precedent for it.

The same records configure the simulator, the library, the spool and the gateway. Each field's
comment names who else uses that default; what goes wrong at half and at double is on the policy's
page in the docs.
"""

from typing import ClassVar, Final, Literal, get_args

import msgspec

from tidegate.settings.rules import finite, lasting, not_so_long, one_of, refuse, whole
from tidegate.units import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    Count,
    Duration,
    Rate,
    Share,
    format_duration,
)

__all__ = [
    "Adaptive",
    "Backoff",
    "Breaker",
    "Budget",
    "CoDel",
    "Full",
    "Gradient",
    "Hedge",
    "Jitter",
    "Limit",
    "Order",
    "Queue",
    "RateLimit",
    "RetryReason",
    "Settings",
    "Throttle",
    "Vegas",
]

RetryReason = Literal["timeout", "failure", "overloaded"]
Jitter = Literal["full", "equal", "none", "decorrelated"]
Order = Literal["fifo", "lifo", "adaptive_lifo"]
Full = Literal["refuse", "silence"]

_COUNT_MAX: Final = 1_000_000
_FACTOR: Final = 2.0
_RATE_MAX: Final = 10_000_000  # at 100 ns a decision nothing here could enforce more


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every settings record.

    `shorthand` names the field that a bare value stands for: `budget: 10%` is
    `budget: {ratio: 10%}`. `both` is a key, a word and a second key: `replicas: 1 of 3` gives both.
    """

    shorthand: ClassVar[str | None] = None
    both: ClassVar[tuple[str, str, str] | None] = None


class Budget(Settings, frozen=True, kw_only=True):
    """How many retries all calls together may make: `budget: 10%`.

    Every first attempt deposits `ratio` tokens, every retry takes one. Saved tokens are capped at
    `ratio` times the first attempts of the last `window`, and the cap is never below one, so that
    a rare caller can still retry once. `ratio: 0%` allows no retry at all.
    """

    shorthand: ClassVar[str | None] = "ratio"

    ratio: Share = 0.1  # SRE book ch. 21: 10 % per client holds the load at 1.1x
    window: Duration = 10 * SECOND  # Finagle and linkerd keep deposits for 10 s

    def __post_init__(self) -> None:
        finite("ratio", self.ratio, 0, 10, "a share from 0% to 1000%")
        lasting("window", self.window, SECOND, HOUR, "a duration from 1s to 1h")


class Backoff(Settings, frozen=True, kw_only=True):
    """How long to wait before the next attempt: `backoff: 100ms`.

    The wait before retry n is `base` x `factor`^(n-1), at most `max`, then jittered: `full` draws
    from zero to it, `equal` from half of it to it, `none` takes it as it is (and synchronises all
    callers that failed together). `decorrelated` draws from `base` to `SPREAD` times the wait
    before, at most `max`, and so has no use for a factor.
    """

    shorthand: ClassVar[str | None] = "base"
    SPREAD: ClassVar[float] = 3.0  # Brooker 2015, decorrelated jitter

    base: Duration = 100 * MILLISECOND  # AWS SDKs for Java and JavaScript; Envoy has 25 ms
    factor: float = _FACTOR  # every SDK; 1.0 is a constant wait
    max: Duration = 20 * SECOND  # AWS SDKs
    jitter: Jitter = "full"  # Brooker 2015: least work at equal delay

    def __post_init__(self) -> None:
        lasting("base", self.base, 0, 24 * HOUR, "a duration from 0s to 24h")
        finite("factor", self.factor, 1, 100, "a number from 1 to 100")
        lasting("max", self.max, 0, 24 * HOUR, "a duration from 0s to 24h")
        one_of("jitter", self.jitter, get_args(Jitter))
        if self.max < self.base:
            raise not_so_long("max", f"at least the base of {format_duration(self.base)}", self.max)
        if self.jitter == "decorrelated" and self.factor != _FACTOR:
            raise refuse("factor", "no factor beside decorrelated jitter", self.factor)

    def longest(self, retry: int) -> float:
        """The longest that the wait before retry number `retry` can be, in nanoseconds."""
        growth = self.SPREAD**retry if self.jitter == "decorrelated" else self.factor ** (retry - 1)
        return min(self.base * growth, float(self.max))


class Hedge(Settings, frozen=True, kw_only=True):
    """When to ask again while the answer is awaited: `hedge: 100ms`.

    When an attempt has not been answered `after` so long, another is sent beside it, and `after`
    that long again one more, `max` in all. The first good answer wins. Each takes a token of the
    retry budget; a call without a budget has one of 10 % for its hedges and retries. A call that is
    not idempotent is never hedged.
    """

    shorthand: ClassVar[str | None] = "after"

    after: Duration
    max: Count = 1  # Dean and Barroso 2013, Polly, failsafe-go; gRPC allows four

    def __post_init__(self) -> None:
        lasting("after", self.after, 1, HOUR, "a duration above zero and at most 1h")
        whole("max", self.max, 1, 4, "a whole number from 1 to 4")


class Breaker(Settings, frozen=True, kw_only=True):
    """When to stop calling altogether, and how to come back: `breaker: 50%`.

    Closed, it counts the outcomes of the last `window`; at `failures` or more of at least
    `volume` it opens. After `open_for` it lets `probes` calls through, each with a `lease`; when
    all of them have succeeded it closes, and admits a share that grows from `ramp_from` to all
    over `ramp`.
    """

    shorthand: ClassVar[str | None] = "failures"

    failures: Share = 0.5  # Hystrix, resilience4j
    window: Duration = 10 * SECOND  # Hystrix
    volume: Count = 20  # Hystrix requestVolumeThreshold
    open_for: Duration = 5 * SECOND  # Hystrix, Polly
    probes: Count = 3  # between Hystrix and Polly (1) and resilience4j (10)
    lease: Duration = 30 * SECOND  # the usual timeout of one HTTP call; no precedent sets one
    ramp: Duration = 10 * SECOND  # as long as the window that judges it; nginx examples have 30 s
    ramp_from: Share = 0.1  # Envoy slow start min_weight_percent

    def __post_init__(self) -> None:
        finite("failures", self.failures, 0.01, 1, "a share from 1% to 100%")
        lasting("window", self.window, SECOND, HOUR, "a duration from 1s to 1h")
        whole("volume", self.volume, 1, _COUNT_MAX, "a whole number from 1 to 1000000")
        lasting("open_for", self.open_for, MILLISECOND, HOUR, "a duration from 1ms to 1h")
        whole("probes", self.probes, 1, 1000, "a whole number from 1 to 1000")
        lasting("lease", self.lease, MILLISECOND, HOUR, "a duration from 1ms to 1h")
        lasting("ramp", self.ramp, 0, HOUR, "a duration from 0s to 1h")
        finite("ramp_from", self.ramp_from, 0, 1, "a share from 0% to 100%")


class Throttle(Settings, frozen=True, kw_only=True):
    """When to keep calls back because too few are accepted: `throttle: 2x`.

    Client-side throttling after the SRE book: while the calls wanted in the last `window` are at
    least `volume` and more than `ratio` times those accepted, a share of them stays at home, up to
    `most`. What is kept back counts as wanted.
    """

    shorthand: ClassVar[str | None] = "ratio"

    ratio: float = 2.0  # SRE book ch. 21, K
    window: Duration = 10 * SECOND  # go-zero; the book has 2 min, Envoy 30 s
    volume: Count = 20  # as the breaker's; Kratos has 100, go-zero lets 5 more fail
    most: Share = 0.9  # failsafe-go; Envoy 80 %

    def __post_init__(self) -> None:
        finite("ratio", self.ratio, 1, 100, "a factor from 1 to 100")
        lasting("window", self.window, SECOND, HOUR, "a duration from 1s to 1h")
        whole("volume", self.volume, 1, _COUNT_MAX, "a whole number from 1 to 1000000")
        finite("most", self.most, 0.01, 1, "a share from 1% to 100%")


class RateLimit(Settings, frozen=True, kw_only=True):
    """At most so many per unit of time: `rate_limit: 600/s`.

    `burst` is how many may come at once after a pause; left out, it is a tenth of a second's
    worth and at least one.
    """

    shorthand: ClassVar[str | None] = "rate"

    rate: Rate
    burst: Count | None = None

    def __post_init__(self) -> None:
        finite("rate", self.rate, 1e-6, _RATE_MAX, "a rate above zero and at most 10000000/s")
        if self.burst is not None:
            whole("burst", self.burst, 1, _RATE_MAX, "a whole number from 1 to 10000000")


class Adaptive(Settings, frozen=True, kw_only=True):
    """A limit that finds itself: additive increase, multiplicative decrease on overload.

    Chiu and Jain 1989. Per round trip, the limit grows by one while at least half of it is in
    use, or shrinks to `decrease` of itself when an attempt times out, is refused, or takes longer
    than `latency`.
    """

    start: Count = 20  # Netflix concurrency-limits, all algorithms
    min: Count = 1  # one in flight is the only probe that there is
    max: Count = 1000  # Netflix Vegas; a bound on memory, not a guess of the capacity
    decrease: Share = 0.7  # CUBIC, RFC 9438 section 4.6
    latency: Duration | None = None

    def __post_init__(self) -> None:
        whole("min", self.min, 1, _COUNT_MAX, "a whole number from 1 to 1000000")
        whole("max", self.max, self.min, _COUNT_MAX, "a whole number, at least the minimum")
        whole("start", self.start, self.min, self.max, "a number from the minimum to the maximum")
        finite("decrease", self.decrease, 0.1, 0.999, "a share from 10% to 99.9%")
        if self.latency is not None:
            lasting("latency", self.latency, 1, HOUR, "a duration above zero and at most 1h")


class Gradient(Settings, frozen=True, kw_only=True):
    """A limit that finds itself by the gradient of latency: Netflix's Gradient2.

    Per round trip it grows by `smoothing` x `queue` while answers take no longer than `tolerance`
    times the average of the last `baseline`, and shrinks as they become slower, by half of
    `smoothing` at most.
    """

    start: Count = 20  # Netflix concurrency-limits, all algorithms
    min: Count = 1  # one in flight is the only probe that there is; Netflix has 20
    max: Count = 1000  # as the adaptive limit's; Netflix has 200
    queue: Count = 4  # Netflix
    tolerance: float = 1.5  # Netflix
    smoothing: Share = 0.2  # Netflix
    samples: Count = 50  # failsafe-go; Netflix WindowedLimit 10
    baseline: Duration = 10 * MINUTE  # Netflix: 600 windows of a second

    def __post_init__(self) -> None:
        _finds_itself(self)
        whole("queue", self.queue, 1, 1000, "a whole number from 1 to 1000")
        finite("tolerance", self.tolerance, 1, 100, "a factor from 1 to 100")
        finite("smoothing", self.smoothing, 0.01, 1, "a share from 1% to 100%")


class Vegas(Settings, frozen=True, kw_only=True):
    """A limit that finds itself by the queue that it makes: TCP Vegas, as Netflix has it.

    With the latency that the last `baseline` has shown to be possible it reckons how many of those
    in flight only wait, and keeps that between `alpha` and `beta` times log10 of the limit.
    """

    start: Count = 20  # Netflix concurrency-limits, all algorithms
    min: Count = 1  # Netflix Vegas
    max: Count = 1000  # Netflix Vegas
    alpha: Count = 3  # Netflix Vegas; TCP 2 to 3
    beta: Count = 6  # Netflix Vegas; TCP 4 to 6
    samples: Count = 50  # failsafe-go; Netflix WindowedLimit 10
    baseline: Duration = 10 * MINUTE  # Netflix probes each 30 x limit windows: 20 at one a second

    def __post_init__(self) -> None:
        _finds_itself(self)
        whole("alpha", self.alpha, 1, 1000, "a whole number from 1 to 1000")
        whole("beta", self.beta, self.alpha, 1000, "a whole number from alpha to 1000")


def _finds_itself(limit: Gradient | Vegas) -> None:
    """The rules of what the limits by latency have in common."""
    whole("min", limit.min, 1, _COUNT_MAX, "a whole number from 1 to 1000000")
    whole("max", limit.max, limit.min, _COUNT_MAX, "a whole number, at least the minimum")
    whole("start", limit.start, limit.min, limit.max, "a number from the minimum to the maximum")
    whole("samples", limit.samples, 1, 10_000, "a whole number from 1 to 10000")
    lasting("baseline", limit.baseline, SECOND, DAY, "a duration from 1s to 24h")


class Limit(Settings, frozen=True, kw_only=True):
    """At most so many in flight at once: `limit: 50`, or one that finds itself.

    `limit: {adaptive: {}}` goes by timeouts and refusals, `limit: {gradient: {}}` and
    `limit: {vegas: {}}` by latency.
    """

    shorthand: ClassVar[str | None] = "max"

    max: Count | None = None
    adaptive: Adaptive | None = None
    gradient: Gradient | None = None
    vegas: Vegas | None = None

    @property
    def law(self) -> Adaptive | Gradient | Vegas | None:
        """How it finds itself; None if it is fixed."""
        return self.adaptive or self.gradient or self.vegas

    def __post_init__(self) -> None:
        given = (self.max, self.adaptive, self.gradient, self.vegas)
        if sum(one is not None for one in given) != 1:
            raise refuse("max", "either max, adaptive, gradient or vegas, just one", self.max)
        if self.max is not None:
            whole("max", self.max, 1, _COUNT_MAX, "a whole number from 1 to 1000000")


class CoDel(Settings, frozen=True, kw_only=True):
    """Drop from the queue while its delay stays above `target` for an `interval`.

    Nichols and Jacobson 2012 (RFC 8289) with the server-side form of Maurer's "Fail at Scale"
    (2015): while the queue has not been empty for `interval`, whatever waited longer than
    `target` is dropped.
    """

    target: Duration = 5 * MILLISECOND  # RFC 8289 section 4.4; Facebook uses the same
    interval: Duration = 100 * MILLISECOND  # RFC 8289 section 4.3; Facebook uses the same

    def __post_init__(self) -> None:
        lasting("target", self.target, 1, HOUR, "a duration above zero and at most 1h")
        whole("interval", self.interval, self.target, HOUR, "at least the target, at most 1h")


class Queue(Settings, frozen=True, kw_only=True):
    """The waiting places of one replica, beside those in service: `queue: 100`.

    `order`: `fifo`; `lifo` newest first; `adaptive_lifo` newest first while the queue is longer
    than the workers, else oldest first. `full`: `refuse` answers at once, `silence` says
    nothing and the caller's timer runs. `codel` drops what waited too long; `late` drops at its
    turn what can no longer finish before its caller leaves (needs to know when that is).
    """

    shorthand: ClassVar[str | None] = "limit"

    limit: Count | None = None
    order: Order = "fifo"
    full: Full = "refuse"
    codel: CoDel | None = None
    late: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None:
            whole("limit", self.limit, 0, 100_000_000, "a whole number from 0 to 100000000")
        one_of("order", self.order, get_args(Order))
        one_of("full", self.full, get_args(Full))
