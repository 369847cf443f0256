"""What can be set on each policy, with its default and the precedent for it.

The same records configure the simulator, the library, the spool and the gateway. Each field's
comment names who else uses that default; what goes wrong at half and at double is on the policy's
page in the docs.
"""

from typing import ClassVar, Literal

import msgspec

from tidegate.settings.rules import finite, refuse
from tidegate.units import MILLISECOND, SECOND, Count, Duration, Rate, Share

__all__ = [
    "Adaptive",
    "Backoff",
    "Breaker",
    "Budget",
    "CoDel",
    "Limit",
    "Queue",
    "RateLimit",
    "Settings",
]

RetryReason = Literal["timeout", "failure", "overloaded"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every settings record.

    `shorthand` names the field that a bare value stands for: `budget: 10%` is
    `budget: {ratio: 10%}`.
    """

    shorthand: ClassVar[str | None] = None


class Budget(Settings, frozen=True, kw_only=True):
    """How many retries all calls together may make: `budget: 10%`.

    Every first attempt deposits `ratio` tokens, every retry takes one. Saved tokens never exceed
    `ratio` times the first attempts of the last `window`, and never less than one, so that a rare
    caller can still retry once.
    """

    shorthand: ClassVar[str | None] = "ratio"

    ratio: Share = 0.1  # SRE book ch. 21: 10 % per client holds the load at 1.1x
    window: Duration = 10 * SECOND  # Finagle and linkerd keep deposits for 10 s

    def __post_init__(self) -> None:
        finite("ratio", self.ratio, 0, 10, "a share from 0 to 10")
        finite("window", self.window, SECOND, 3600 * SECOND, "a duration from 1s to 1h")


class Backoff(Settings, frozen=True, kw_only=True):
    """How long to wait before the next attempt: `backoff: 100ms`.

    The wait before retry n is `base` x `factor`^(n-1), at most `max`, then jittered: `full` draws
    from zero to it, `equal` from half of it to it, `none` takes it as it is (and synchronises all
    callers that failed together).
    """

    shorthand: ClassVar[str | None] = "base"

    base: Duration = 100 * MILLISECOND  # AWS SDKs 2022; gRPC's 1 s suits connections, not calls
    factor: float = 2.0  # every SDK; 1.0 is a constant wait
    max: Duration = 20 * SECOND  # AWS SDK "standard" mode
    jitter: Literal["full", "equal", "none"] = "full"  # Brooker 2015: least work at equal delay

    def __post_init__(self) -> None:
        finite("base", self.base, 0, 86_400 * SECOND, "a duration from 0s to 24h")
        finite("factor", self.factor, 1, 100, "a number from 1 to 100")
        finite("max", self.max, 0, 86_400 * SECOND, "a duration from 0s to 24h")
        if self.max < self.base:
            raise refuse("max", "at least the base", self.max)


class Breaker(Settings, frozen=True, kw_only=True):
    """When to stop calling altogether, and how to come back: `breaker: 50%`.

    Closed, it counts the outcomes of the last `window`; at `failures` or more of at least
    `volume` it opens. After `open_for` it lets `probes` calls through at a time, each with a
    `lease`; when `probes` of them have succeeded it closes, and admits a share that grows
    from `ramp_from` to all over `ramp`.
    """

    shorthand: ClassVar[str | None] = "failures"

    failures: Share = 0.5  # resilience4j, Hystrix, Envoy's success-rate ejection
    window: Duration = 10 * SECOND  # Hystrix
    volume: Count = 20  # Hystrix requestVolumeThreshold
    open_for: Duration = 5 * SECOND  # Hystrix, Polly
    probes: Count = 3  # Istio and failsafe examples; 1 lets one lucky call close it
    lease: Duration = 30 * SECOND  # a probe not settled by then counts as failed
    ramp: Duration = 10 * SECOND  # Envoy slow start window of the docs
    ramp_from: Share = 0.1  # Envoy slow start min_weight_percent

    def __post_init__(self) -> None:
        finite("failures", self.failures, 0.01, 1, "a share from 1% to 100%")
        finite("window", self.window, SECOND, 3600 * SECOND, "a duration from 1s to 1h")
        finite("volume", self.volume, 1, 1_000_000, "a whole number from 1 to 1000000")
        finite("open_for", self.open_for, MILLISECOND, 3600 * SECOND, "a duration from 1ms to 1h")
        finite("probes", self.probes, 1, 1000, "a whole number from 1 to 1000")
        finite("lease", self.lease, MILLISECOND, 3600 * SECOND, "a duration from 1ms to 1h")
        finite("ramp", self.ramp, 0, 3600 * SECOND, "a duration from 0s to 1h")
        finite("ramp_from", self.ramp_from, 0, 1, "a share from 0% to 100%")


class RateLimit(Settings, frozen=True, kw_only=True):
    """At most so many per unit of time: `rate_limit: 600/s`.

    `burst` is how many may come at once after a pause; left out, it is a tenth of a second's
    worth and at least one.
    """

    shorthand: ClassVar[str | None] = "rate"

    rate: Rate
    burst: Count | None = None

    def __post_init__(self) -> None:
        finite("rate", self.rate, 1e-6, 1e9, "a rate above zero and at most 1000000000/s")
        if self.burst is not None:
            finite("burst", self.burst, 1, 1e9, "a whole number from 1")


class Adaptive(Settings, frozen=True, kw_only=True):
    """A limit that finds itself: additive increase, multiplicative decrease on overload.

    Chiu and Jain 1989; the form and the defaults are those of Netflix concurrency-limits' AIMD:
    one more for each success while at least half of the limit is in use, times `decrease`
    when an attempt times out, is refused, or takes longer than `latency`.
    """

    start: Count = 20
    min: Count = 1
    max: Count = 1000
    decrease: Share = 0.9
    latency: Duration | None = None

    def __post_init__(self) -> None:
        finite("min", self.min, 1, 1_000_000, "a whole number from 1")
        finite("max", self.max, self.min, 1_000_000, "a whole number, at least the minimum")
        finite("start", self.start, self.min, self.max, "a number from the minimum to the maximum")
        finite("decrease", self.decrease, 0.1, 0.999, "a share from 10% to 99.9%")


class Limit(Settings, frozen=True, kw_only=True):
    """At most so many in flight at once: `limit: 50`, or `limit: {adaptive: {}}`."""

    shorthand: ClassVar[str | None] = "max"

    max: Count | None = None
    adaptive: Adaptive | None = None

    def __post_init__(self) -> None:
        if (self.max is None) == (self.adaptive is None):
            raise refuse("max", "either a fixed max or adaptive, one of the two", self.max)
        if self.max is not None:
            finite("max", self.max, 1, 1_000_000, "a whole number from 1")


class CoDel(Settings, frozen=True, kw_only=True):
    """Drop from the queue while its delay stays above `target` for an `interval`.

    Nichols and Jacobson 2012 (RFC 8289) with the server-side form of Maurer's "Fail at Scale"
    (2015): while the queue has not been empty for `interval`, whatever waited longer than
    `target` is dropped.
    """

    target: Duration = 5 * MILLISECOND  # RFC 8289 section 4.3; Facebook uses the same
    interval: Duration = 100 * MILLISECOND  # RFC 8289 section 4.2

    def __post_init__(self) -> None:
        finite("target", self.target, 1, 3600 * SECOND, "a duration above zero")
        finite("interval", self.interval, self.target, 3600 * SECOND, "at least the target")


class Queue(Settings, frozen=True, kw_only=True):
    """The waiting places of one replica, beside those in service: `queue: 100`.

    `order`: `fifo`; `lifo` newest first; `adaptive_lifo` newest first while the queue is longer
    than the workers, else oldest first. `full`: `refuse` answers at once, `silence` says
    nothing and the caller's timer runs. `codel` drops what waited too long; `late` drops at its
    turn what can no longer finish before its caller leaves (needs to know when that is).
    """

    shorthand: ClassVar[str | None] = "limit"

    limit: Count | None = None
    order: Literal["fifo", "lifo", "adaptive_lifo"] = "fifo"
    full: Literal["refuse", "silence"] = "refuse"
    codel: CoDel | None = None
    late: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None:
            finite("limit", self.limit, 0, 100_000_000, "a whole number from 0")
