"""What does a system look like: who calls whom, how often, for how long, and what may go wrong?

These are the records behind the system file. An absent key means that the thing is not there.
Names are checked as a whole in `System`, so that a file and a line of Python fail alike.
"""

import math
from collections.abc import Iterator
from typing import ClassVar, Final, Literal, TypeVar, get_args

import msgspec

from tidegate.errors import SettingsError, nearest
from tidegate.settings.admission import Admission
from tidegate.settings.policies import (
    Adaptive,
    Backoff,
    Breaker,
    Budget,
    Hedge,
    Limit,
    Queue,
    RateLimit,
    RetryReason,
    Settings,
    Throttle,
)
from tidegate.settings.rules import finite, lasting, one_of, refuse, whole
from tidegate.settings.spool import Spool
from tidegate.units import (
    DAY,
    SECOND,
    Count,
    Duration,
    Factor,
    PerRequest,
    Rate,
    Share,
)

__all__ = [
    "Action",
    "Call",
    "Client",
    "Journey",
    "Objective",
    "Restart",
    "Service",
    "System",
    "Time",
    "Trigger",
    "default_protection",
    "protected",
]

_Z99: Final = 2.3263478740408408  # the 99th percentile of the standard normal

ALL_REASONS: tuple[RetryReason, ...] = ("timeout", "failure", "overloaded")

Protect = Literal["none", "default"]
Balance = Literal["round_robin", "random", "least_loaded", "shared_queue"]
Abandoned = Literal["finish", "skip", "cancel"]


class Time(Settings, frozen=True, kw_only=True):
    """How long a piece of work takes: `time: 50ms`.

    A bare duration is the mean of an exponential; `{median, p99}` a lognormal through both;
    `{constant}` always the same.
    """

    shorthand: ClassVar[str | None] = "mean"

    mean: Duration | None = None
    constant: Duration | None = None
    median: Duration | None = None
    p99: Duration | None = None

    def __post_init__(self) -> None:
        for key in ("mean", "constant", "median", "p99"):
            value = getattr(self, key)
            if value is not None:
                lasting(key, value, 0, DAY, "a duration from 0s to 24h")
        forms = (self.mean is not None, self.constant is not None, self.median is not None)
        if sum(forms) != 1 or (self.median is None) != (self.p99 is None):
            raise refuse("mean", "a mean, a constant, or a median with its p99", self.mean)
        if self.median is not None and self.p99 is not None and not 0 < self.median <= self.p99:
            raise refuse("p99", "at least the median, which is above zero", self.p99)

    @property
    def sigma(self) -> float:
        """The standard deviation of the logarithm; zero unless a lognormal."""
        if self.median is None or self.p99 is None:
            return 0.0
        return math.log(self.p99 / self.median) / _Z99

    @property
    def average(self) -> float:
        """The mean in nanoseconds, whichever form was given."""
        if self.median is not None:
            return self.median * math.exp(self.sigma**2 / 2)
        return float(self.mean if self.mean is not None else self.constant or 0)


class Call(Settings, frozen=True, kw_only=True):
    """One call that a client or a service makes for each of its requests.

    Its name in the file is also the name of its guard. The keys are those of the table in
    `docs/system-file.md`.
    """

    shorthand: ClassVar[str | None] = "to"

    to: str | None = None
    per_request: PerRequest = 1.0
    optional: bool = False
    wait: bool = True
    attempts: Count | None = None
    timeout: Duration | None = None
    deadline: Duration | None = None
    propagate: bool = False
    backoff: Backoff | None = None
    retry_on: tuple[RetryReason, ...] = ALL_REASONS
    budget: Budget | None = None
    hedge: Hedge | None = None
    throttle: Throttle | None = None
    breaker: Breaker | None = None
    limit: Limit | None = None
    rate_limit: RateLimit | None = None
    network: Time | None = None
    idempotent: bool = True
    protect: Protect = "none"

    def __post_init__(self) -> None:
        finite("per_request", self.per_request, 0, 1000, "a number from 0 to 1000")
        if self.attempts is not None:
            whole("attempts", self.attempts, 1, 100, "a whole number from 1 to 100")
        for key in ("timeout", "deadline"):
            value = getattr(self, key)
            if value is not None:
                lasting(key, value, 1, DAY, "a duration above zero and at most 24h")
        one_of("protect", self.protect, get_args(Protect))
        for reason in self.retry_on:
            one_of("retry_on", reason, ALL_REASONS)
        if len(set(self.retry_on)) != len(self.retry_on):
            raise refuse("retry_on", "each reason once", list(self.retry_on))
        if not self.wait and not self.optional:
            raise refuse(
                "wait", "true unless the call is also optional: nobody sees its failure", False
            )

    @property
    def tries(self) -> int:
        """Tries in all, the first included: `attempts`, and one where nothing is said of it.

        Nothing said is not the same as one: `protect: default` adds a second try only to the first.
        """
        return self.attempts or 1

    @property
    def paid_from(self) -> Budget | None:
        """The budget of its retries and hedges: a call that hedges has one in any case.

        Without one an outage, in which every call is slow, would double the load.
        """
        hedged = self.hedge is not None and self.idempotent
        return self.budget or (Budget() if hedged else None)


class Client(Settings, frozen=True, kw_only=True):
    """A population that sends requests: `rate` (open, Poisson) or `users` with `think` (closed)."""

    rate: Rate | None = None
    users: Count | None = None
    think: Time | None = None
    calls: dict[str, Call]

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.users is None):
            raise refuse("rate", "either a rate, or users with think, one of the two", self.rate)
        if self.rate is not None:
            finite("rate", self.rate, 1e-6, 1e9, "a rate above zero and at most 1000000000/s")
        if self.users is not None:
            whole("users", self.users, 1, 10_000_000, "a whole number from 1")
            if self.think is None:
                raise refuse("think", "a duration between two requests of a user", None)
        elif self.think is not None:
            raise refuse("think", "nothing unless users are given", "a duration")
        if not self.calls:
            raise refuse("calls", "at least one call", {})


class Restart(Settings, frozen=True, kw_only=True):
    """A service that restarts itself when overloaded, as a database under its own protection.

    When more than `backlog` requests wait in one replica, the replica drops all it holds, is away
    for `down`, and comes back; with `stuck` it accepts requests and finishes none until an
    action resets it.
    """

    backlog: Count
    down: Duration = 30 * SECOND
    stuck: bool = False

    def __post_init__(self) -> None:
        whole("backlog", self.backlog, 1, 100_000_000, "a whole number from 1")
        lasting("down", self.down, 0, DAY, "a duration from 0s to 24h")


class Service(Settings, frozen=True, kw_only=True):
    """One service: replicas that each have their own workers and queue."""

    workers: Count | None = None
    blocking: bool = True
    time: Time | None = None
    replicas: Count = 1
    balance: Balance = "round_robin"
    queue: Queue = Queue()
    rate_limit: RateLimit | None = None
    limit: Limit | None = None
    admission: Admission | None = None
    refusal_cost: Share = 0.0
    abandoned: Abandoned = "finish"
    errors: Share = 0.0
    contention: Duration | None = None
    thrash: Share = 0.0
    restart: Restart | None = None
    parallel: bool = False
    calls: dict[str, Call] = {}
    address: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            whole("workers", self.workers, 1, 1_000_000, "a whole number from 1")
        whole("replicas", self.replicas, 1, 10_000, "a whole number from 1 to 10000")
        finite("refusal_cost", self.refusal_cost, 0, 100, "a share from 0")
        finite("errors", self.errors, 0, 1, "a share from 0% to 100%")
        finite("thrash", self.thrash, 0, 100, "a share from 0")
        if self.contention is not None:
            lasting("contention", self.contention, 0, DAY, "a duration from 0s to 24h")
        if self.limit is not None and self.admission is not None:
            raise refuse("admission", "either a limit or an admission, which has one", "both")
        one_of("balance", self.balance, get_args(Balance))
        one_of("abandoned", self.abandoned, get_args(Abandoned))


class Trigger(Settings, frozen=True, kw_only=True, rename={"for_": "for"}):
    """Something that goes wrong for a while, at one service, client or call.

    `at` counts from the start of the run; left out, it comes once the system has settled. `for`
    left out means until an action ends it. `ramp` is how long it takes to reach full strength.
    `replicas` is how many of the service's it hits, `of` how many there are; in a file both are
    written `replicas: 1 of 3`.
    """

    both: ClassVar[tuple[str, str, str] | None] = ("replicas", " of ", "of")

    service: str | None = None
    client: str | None = None
    call: str | None = None
    at: Duration | None = None
    for_: Duration | None = None
    ramp: Duration | None = None
    replicas: Count | None = None
    of: Count | None = None
    slowdown: Factor | None = None
    freeze: bool = False
    capacity: Share | None = None
    errors: Share | None = None
    latency: Duration | None = None
    load: Factor | None = None
    rate_limit: RateLimit | None = None
    per_request: PerRequest | None = None

    def __post_init__(self) -> None:
        _one_target(self.service, self.client, self.call)
        for key in ("at", "ramp", "latency"):
            value = getattr(self, key)
            if value is not None:
                lasting(key, value, 0, 30 * DAY, "a duration from 0s to 30d")
        self._check_replicas()
        if self.per_request is not None:
            finite("per_request", self.per_request, 0, 1000, "a number from 0 to 1000")
        if self.slowdown is not None:
            finite(
                "slowdown", self.slowdown, 1, 1e6, "a factor of 1 or more: 4x is four times slower"
            )
        if self.capacity is not None:
            finite("capacity", self.capacity, 0, 1, "what is left, as a share from 0% to 100%")
        if self.errors is not None:
            finite("errors", self.errors, 0, 1, "a share from 0% to 100%")
        if self.load is not None:
            finite("load", self.load, 0, 1000, "a factor from 0 to 1000")
        if self.for_ is not None:
            lasting("for", self.for_, 1, 30 * DAY, "a duration above zero")
            if self.ramp is not None and self.ramp > self.for_:
                raise refuse("ramp", "at most as long as the trigger itself", self.ramp)
        _effects_fit(self, self.target_kind, _TRIGGER_EFFECTS)

    def _check_replicas(self) -> None:
        if self.replicas is not None:
            whole("replicas", self.replicas, 1, 10_000, "a whole number from 1 to 10000")
        if self.of is not None:
            whole("of", self.of, 1, 10_000, "a whole number from 1 to 10000")
            if self.replicas is None:
                raise refuse("of", "replicas beside it, as in `replicas: 1 of 3`", self.of)
            if self.replicas > self.of:
                raise refuse("replicas", f"at most the {self.of} that there are", self.replicas)
        if self.replicas is not None and self.service is None:
            raise SettingsError("only a service has replicas", path=("replicas",))

    @property
    def target_kind(self) -> Literal["service", "client", "call"]:
        """Which kind of thing it hits."""
        if self.service is not None:
            return "service"
        return "client" if self.client is not None else "call"

    @property
    def target(self) -> str:
        """The name of what it hits."""
        return self.service or self.client or self.call or ""


class Action(Settings, frozen=True, kw_only=True):
    """Something that people do to get out: tried alone and together from the stuck state.

    `ends` names a trigger to undo (a rollback). The others change their target for good:
    `capacity` as a multiple of what the file says, `load` likewise, a new `rate_limit`,
    `attempts` of a call, `open` holds a call's circuit open, `remove` takes a call out of the code,
    `flush` empties a service's queues, `reset` frees a stuck service.
    """

    ends: str | None = None
    service: str | None = None
    client: str | None = None
    call: str | None = None
    capacity: Share | None = None
    load: Factor | None = None
    rate_limit: RateLimit | None = None
    attempts: Count | None = None
    open: bool = False
    remove: bool = False
    flush: bool = False
    reset: bool = False

    def __post_init__(self) -> None:
        if self.ends is None:
            _one_target(self.service, self.client, self.call)
        elif self.service or self.client or self.call:
            raise refuse("ends", "either a trigger to end or a target to change", self.ends)
        if self.capacity is not None:
            finite("capacity", self.capacity, 0.001, 1000, "a share above zero, as 200%")
        if self.load is not None:
            finite("load", self.load, 0, 1000, "a factor from 0 to 1000")
        if self.attempts is not None:
            whole("attempts", self.attempts, 1, 100, "a whole number from 1 to 100")
        kind = "service" if self.service else "client" if self.client else "call"
        _effects_fit(self, "trigger" if self.ends else kind, _ACTION_EFFECTS)


class Journey(Settings, frozen=True, kw_only=True):
    """What a person wants done, and the client whose requests do it."""

    client: str


class Objective(Settings, frozen=True, kw_only=True):
    """When is a client served well enough: `{goodput: 95%, within: 60s}`."""

    goodput: Share = 0.95
    within: Duration = 60 * SECOND

    def __post_init__(self) -> None:
        finite("goodput", self.goodput, 0.01, 1, "a share from 1% to 100%")
        lasting("within", self.within, 0, DAY, "a duration from 0s to 24h")


_TRIGGER_EFFECTS: Final[dict[str, tuple[str, ...]]] = {
    "service": ("slowdown", "freeze", "capacity", "errors", "latency", "rate_limit"),
    "client": ("load",),
    "call": ("latency", "per_request", "rate_limit"),
}
_ACTION_EFFECTS: Final[dict[str, tuple[str, ...]]] = {
    "service": ("capacity", "rate_limit", "flush", "reset"),
    "client": ("load",),
    "call": ("rate_limit", "attempts", "open", "remove"),
    "trigger": (),
}


def _effects_fit(record: Settings, kind: str, effects: dict[str, tuple[str, ...]]) -> None:
    """Raise unless the record says at least one thing, and only things that fit its target."""
    fits = effects[kind]
    # Zero is an effect too: `capacity: 0%` is a total outage, and 0 == False.
    given = [
        key
        for key in dict.fromkeys(key for keys in effects.values() for key in keys)
        if getattr(record, key) is not None and getattr(record, key) is not False
    ]
    if fits and not given:
        raise SettingsError(f"expected what happens, one of: {', '.join(fits)}")
    for key in given:
        if key not in fits:
            able = f"it can have: {', '.join(fits)}" if fits else "ending a trigger is all it does"
            raise SettingsError(f"{key} does not fit a {kind}; {able}", path=(key,))


def _one_target(service: str | None, client: str | None, call: str | None) -> None:
    given = [name for name in (service, client, call) if name is not None]
    if len(given) != 1:
        raise SettingsError("expected one target: service, client or call")


class System(Settings, frozen=True, kw_only=True):
    """A whole system, as the file describes it. Names are checked here."""

    tidegate: int = 1
    clients: dict[str, Client] = {}
    services: dict[str, Service] = {}
    triggers: dict[str, Trigger] = {}
    actions: dict[str, Action] = {}
    journeys: dict[str, Journey] = {}
    objective: Objective = Objective()
    spool: Spool | None = None

    def __post_init__(self) -> None:
        if self.tidegate != 1:
            raise refuse("tidegate", "version 1 of the system file", self.tidegate)
        # A file may be of a spool alone; half of a system is a slip.
        if not self.clients and (self.spool is None or self.services):
            raise refuse("clients", "at least one client", {})
        if not self.services and (self.spool is None or self.clients):
            raise refuse("services", "at least one service", {})
        for name in self.clients:
            if name in self.services:
                raise SettingsError(
                    f"{name!r} is a client and a service; give one another name",
                    path=("clients", name),
                )
        self._check_calls()
        self._check_cycle()
        self._check_targets()

    def callers(self) -> Iterator[tuple[Literal["clients", "services"], str, dict[str, Call]]]:
        """Every caller with its calls: first the clients, then the services, as written."""
        for name, client in self.clients.items():
            yield "clients", name, client.calls
        for name, service in self.services.items():
            yield "services", name, service.calls

    def target_of(self, name: str, call: Call) -> str:
        """The service that a call goes to: its `to`, else its own name."""
        return call.to if call.to is not None else name

    def _check_calls(self) -> None:
        seen: dict[str, tuple[str, str]] = {}
        services = tuple(self.services)
        for section, caller, calls in self.callers():
            for name, call in calls.items():
                path = (section, caller, "calls", name)
                if name in seen:
                    first = seen[name]
                    raise SettingsError(
                        f"the call name {name!r} is used twice, also in {first[0]}.{first[1]};"
                        f" give one of them a name of its own and say where it goes, as"
                        f" '{caller} {name}: {{to: {self.target_of(name, call)}}}'",
                        path=path,
                    )
                seen[name] = (section, caller)
                target = self.target_of(name, call)
                if target not in self.services:
                    raise SettingsError(
                        f"there is no service {target!r}{nearest(target, services)}",
                        path=(*path, "to") if call.to is not None else path,
                    )

    def _check_cycle(self) -> None:
        state: dict[str, int] = {}  # 1 on the current path, 2 done
        for start in self.services:
            if start in state:
                continue
            trail: list[tuple[str, Iterator[tuple[str, Call]]]] = []
            state[start] = 1
            trail.append((start, iter(self.services[start].calls.items())))
            while trail:
                caller, calls = trail[-1]
                step = next(((n, c) for n, c in calls if c.wait), None)
                if step is None:
                    state[caller] = 2
                    trail.pop()
                    continue
                target = self.target_of(*step)
                if state.get(target) == 1:
                    names = [name for name, _ in trail]
                    cycle = " -> ".join([*names[names.index(target) :], target])
                    raise SettingsError(
                        f"services wait for each other in a circle: {cycle}",
                        path=("services", caller, "calls", step[0]),
                    )
                if target not in state:
                    state[target] = 1
                    trail.append((target, iter(self.services[target].calls.items())))

    def _check_targets(self) -> None:
        calls = tuple(name for _, _, calls in self.callers() for name in calls)
        known = {"service": tuple(self.services), "client": tuple(self.clients), "call": calls}
        for section in ("triggers", "actions"):
            for name, item in getattr(self, section).items():
                for kind, names in known.items():
                    target = getattr(item, kind)
                    if target is not None and target not in names:
                        raise SettingsError(
                            f"there is no {kind} {target!r}{nearest(target, names)}",
                            path=(section, name, kind),
                        )
        for name, trigger in self.triggers.items():
            if trigger.of is not None and trigger.service is not None:
                there = self.services[trigger.service].replicas
                if trigger.of != there:
                    raise SettingsError(
                        f"it says {trigger.replicas} of {trigger.of}, but {trigger.service} has"
                        f" {there} replica{'' if there == 1 else 's'}",
                        path=("triggers", name, "replicas"),
                    )
        for name, action in self.actions.items():
            if action.ends is not None and action.ends not in self.triggers:
                raise SettingsError(
                    f"there is no trigger {action.ends!r}"
                    f"{nearest(action.ends, tuple(self.triggers))}",
                    path=("actions", name, "ends"),
                )
        for name, journey in self.journeys.items():
            if journey.client not in self.clients:
                raise SettingsError(
                    f"there is no client {journey.client!r}"
                    f"{nearest(journey.client, tuple(self.clients))}",
                    path=("journeys", name, "client"),
                )


_Caller = TypeVar("_Caller", Client, Service)


def protected(system: System) -> System:
    """The same system with every `protect: default` written out in full."""
    return msgspec.structs.replace(
        system,
        clients={k: _protect_calls(v) for k, v in system.clients.items()},
        services={k: _protect_calls(v) for k, v in system.services.items()},
    )


def _protect_calls(caller: _Caller) -> _Caller:
    calls = {name: default_protection(call) for name, call in caller.calls.items()}
    return msgspec.structs.replace(caller, calls=calls)


def default_protection(call: Call) -> Call:
    """What `protect: default` adds: the safe set, only where the file says nothing itself.

    Two attempts with jittered backoff within a 10 % budget, a breaker, a limit that finds itself,
    and 10 s for an attempt.
    """
    if call.protect != "default":
        return call
    fields: dict[str, object] = {"protect": "none"}
    if call.attempts is None and call.idempotent:
        fields["attempts"] = 2
    if call.timeout is None:
        fields["timeout"] = 10 * SECOND
    if call.backoff is None:
        fields["backoff"] = Backoff()
    if call.budget is None:
        fields["budget"] = Budget()
    if call.breaker is None:
        fields["breaker"] = Breaker()
    if call.limit is None:
        # What keeps a slow dependency's queue shorter than its callers' timeout, so that what it
        # can still do is of use: a breaker alone gives up all of it, time and again.
        fields["limit"] = Limit(adaptive=Adaptive())
    return msgspec.structs.replace(call, **fields)
