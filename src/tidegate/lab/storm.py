"""Which storm is it, what does the simulator say of it, and which figures are told of any run?

A `Storm` is the story of a system file with one client, one call, one service and one trigger, a
slowdown of the service or a surge of the client: some seconds of health, the trigger, some seconds
after. Whoever runs it, the simulator here or the machine in `live`, gives a `Series`, and the same
figures are made of both.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final, Literal, NamedTuple

import msgspec

from tidegate.errors import SettingsError
from tidegate.findings import Measure, Timeline
from tidegate.lab.findings import How, StormAgreement, StormRun, Which
from tidegate.lab.service import playable
from tidegate.loadgen.plan import Stretch, rate_at, steady, surging
from tidegate.settings import system as settings
from tidegate.settings.admission import Admission
from tidegate.settings.system import Call, System, Trigger, default_protection
from tidegate.sim.world import World
from tidegate.units import SECOND, Duration

__all__ = ["Series", "Storm", "agreement", "behind", "guarded", "predicted", "story", "told"]

BEFORE: Final = 4 * SECOND
AFTER: Final = 10 * SECOND  # twice the 5 s within which it must be back

_BACK_SHARE: Final = 0.95
_BACK_FOR: Final = 5  # seconds running at that share: 700 requests of 140/s, so luck is small
_PATIENCE_MAX: Final = 60 * SECOND


class Storm(NamedTuple):
    """One story. `call` is what the client goes by; `lasts` is the trigger's time."""

    system: System
    client: str
    call_name: str
    call: Call
    service_name: str
    service: settings.Service
    trigger_name: str
    trigger: Trigger
    before: Duration
    lasts: Duration
    after: Duration

    @property
    def rate(self) -> float:
        """Offered per second in health."""
        rate = self.system.clients[self.client].rate
        assert rate is not None
        return rate

    @property
    def slowdown(self) -> float:
        """How many times longer work takes while the trigger lasts."""
        return self.trigger.slowdown or 1.0

    @property
    def plan(self) -> list[Stretch]:
        """What is sent when."""
        if self.trigger.client is None:
            return steady(self.rate, self.whole)
        return surging(self.rate, self.whole, self.trigger, self.before)

    @property
    def left(self) -> float:
        """What the service can do per second while the trigger lasts, of what is offered then."""
        assert self.service.workers is not None
        assert self.service.time is not None
        could = self.service.workers * SECOND / (self.service.time.average * self.slowdown)
        plan, half = self.plan, SECOND // 2
        seconds = range(self.before + half, self.before + self.lasts, SECOND)
        return sum(min(could, rate_at(plan, at)) for at in seconds) / len(seconds)

    @property
    def whole(self) -> Duration:
        """From the first start to the last."""
        return self.before + self.lasts + self.after

    @property
    def patience(self) -> Duration:
        """How long a client waits for one request in all, as the simulator counts it."""
        limit = self.call.deadline if self.call.deadline is not None else self.call.timeout
        return _PATIENCE_MAX if limit is None else limit


class Series(NamedTuple):
    """What one run gave, second by second."""

    offered: list[int]
    good: list[int]
    eventual: list[int]
    attempts: list[int]
    seed: int
    doubt: str = ""


def story(
    system: System,
    *,
    lasts: Duration | None = None,
    before: Duration = BEFORE,
    after: Duration = AFTER,
) -> Storm:
    """The storm that the file describes; `lasts` overrules how long its trigger does.

    Raises SettingsError for what the lab cannot raise.
    """
    if len(system.clients) != 1 or len(system.services) != 1:
        raise SettingsError("the lab raises a storm of one client and one service")
    ((client_name, client),) = system.clients.items()
    if client.rate is None:
        raise SettingsError("the lab needs a rate of requests", path=("clients", client_name))
    ((service_name, service),) = system.services.items()
    playable(service_name, service)
    call_name, call = _only_call(client_name, client)
    trigger_name, trigger = _trigger(system)
    lasts = trigger.for_ if lasts is None else lasts
    if lasts is None:
        raise SettingsError("say how long it lasts", path=("triggers", trigger_name, "for"))
    lasts = _whole(lasts)
    trigger = msgspec.structs.replace(trigger, at=None, for_=lasts)
    return Storm(
        system=system,
        client=client_name,
        call_name=call_name,
        call=default_protection(call),
        service_name=service_name,
        service=service,
        trigger_name=trigger_name,
        trigger=trigger,
        before=before,
        lasts=lasts,
        after=after,
    )


def guarded(storm: Storm) -> Storm:
    """The same storm, its call as `tidegate.guard(name)` would make it: the safe defaults, beside
    what the file says itself.
    """
    call = msgspec.structs.replace(storm.call, protect="default")
    return storm._replace(call=default_protection(call))


def behind(storm: Storm, admission: Admission) -> Storm:
    """The same storm at a server with our door, which stops what nobody waits for any more."""
    service = msgspec.structs.replace(storm.service, admission=admission, abandoned="cancel")
    system = msgspec.structs.replace(storm.system, services={storm.service_name: service})
    return storm._replace(service=service, system=system)


def predicted(storm: Storm, seed: int) -> Series:
    """The storm in the simulator."""
    client = storm.system.clients[storm.client]
    client = msgspec.structs.replace(client, calls={storm.call_name: storm.call})
    system = msgspec.structs.replace(storm.system, clients={storm.client: client})
    end = storm.whole + _whole(storm.patience)
    world = World(system, seed=seed, horizon=end)
    world.plan(storm.trigger_name, storm.trigger, storm.before)
    world.run(end)
    seconds = storm.whole // SECOND
    tally, sent = world.clients[storm.client].tally, world.calls[storm.call_name]
    return Series(
        tally.offered[:seconds],
        tally.good[:seconds],
        tally.eventual[:seconds],
        sent.attempts[:seconds],
        seed,
    )


def told(storm: Storm, client: Which, how: How, runs: Sequence[Series]) -> StormRun:
    """The figures of one or more runs of the same story, and the timeline of the first."""
    start, end = storm.before // SECOND, (storm.before + storm.lasts) // SECOND

    def per_second(rows: Sequence[Sequence[int]], first: int, last: int | None) -> Measure:
        return _measure([_mean(row[first:last]) for row in rows], "/s", how)

    good = [run.good for run in runs]
    back = [_back_after(run, end) for run in runs]
    came_back = [seconds for seconds in back if seconds is not None]
    during = per_second(good, start, end)
    first = runs[0]
    return StormRun(
        client=client,
        how=how,
        before=per_second(good, 0, start),
        during=during,
        kept=_measure([_mean(row[start:end]) / storm.left for row in good], "share", how),
        eventual=per_second([run.eventual for run in runs], start, end),
        after=per_second(good, end, None),
        attempts=per_second([run.attempts for run in runs], start, end),
        back_after=_measure(came_back, "s", how) if len(came_back) == len(runs) else None,
        timeline=Timeline(
            seconds=[float(second) for second in range(len(first.good))],
            offered=[float(count) for count in first.offered],
            goodput=[float(count) for count in first.good],
            attempts=[float(count) for count in first.attempts],
            start=float(start),
            end=float(end),
            seed=first.seed,
            client=storm.client,
        ),
        doubt=next((run.doubt for run in runs if run.doubt), ""),
    )


def agreement(
    client: Which, simulated: Sequence[Series], measured: Sequence[Series]
) -> list[StormAgreement]:
    """Goodput and attempts of whole runs, per offered request, since luck offers more or fewer."""
    return [
        _compared(client, "goodput", _shares(simulated, "good"), _shares(measured, "good")),
        _compared(
            client, "attempts", _shares(simulated, "attempts"), _shares(measured, "attempts")
        ),
    ]


def _shares(runs: Sequence[Series], field: str) -> list[float]:
    return [sum(getattr(run, field)) / sum(run.offered) for run in runs]


def _compared(
    client: Which, what: Literal["goodput", "attempts"], said: list[float], seen: list[float]
) -> StormAgreement:
    return StormAgreement(
        client=client,
        what=what,
        simulated=_measure(said, "per request", "simulated"),
        measured=_measure(seen, "per request", "measured"),
        difference=median(seen) / median(said) - 1,
    )


def _only_call(name: str, client: settings.Client) -> tuple[str, Call]:
    path: tuple[str, ...] = ("clients", name)
    if len(client.calls) != 1:
        raise SettingsError("the lab makes one call a request", path=path)
    ((call_name, call),) = client.calls.items()
    if call.per_request != 1 or call.network is not None:
        raise SettingsError(
            "the lab makes one call a request, over the loopback", path=(*path, "calls", call_name)
        )
    return call_name, call


def _trigger(system: System) -> tuple[str, Trigger]:
    """The first trigger that the lab can raise; it plays slowdowns that begin and end at once."""
    for name, trigger in system.triggers.items():
        if trigger.client is not None:
            return name, trigger
        if trigger.slowdown is None:
            continue
        plain = Trigger(service=trigger.service, slowdown=trigger.slowdown, for_=trigger.for_)
        if msgspec.structs.replace(trigger, at=None) == plain:
            return name, trigger
    raise SettingsError(
        "the lab raises a slowdown of the service, without a ramp, or a load of the client; there"
        " is neither",
        path=("triggers",),
    )


def _back_after(run: Series, end: int) -> float | None:
    """Seconds from the trigger's end until goodput is back for good; None if it is not."""
    for second in range(end, len(run.good) - _BACK_FOR + 1):
        offered = sum(run.offered[second : second + _BACK_FOR])
        if sum(run.good[second : second + _BACK_FOR]) >= _BACK_SHARE * offered:
            return float(second - end)
    return None


def _measure(values: Sequence[float], unit: str, how: How) -> Measure:
    return Measure(
        value=median(values),
        low=min(values),
        high=max(values),
        unit=unit,
        runs=len(values),
        how=how,
    )


def _mean(counts: Sequence[int]) -> float:
    return sum(counts) / len(counts)


def _whole(duration: Duration) -> Duration:
    """Up to the next whole second, since everything is counted by the second."""
    return -(-duration // SECOND) * SECOND
