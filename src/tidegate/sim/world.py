"""How does a described system come to life?

A `World` is one run: the parts assembled from the settings, the loop, the tallies. It runs in
pieces, so that whoever drives it can look, begin and end triggers, and act in between. Equal
system, seed and sequence of calls give equal runs.
"""

from math import ceil
from random import Random
from typing import Final, final

import msgspec

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.pipeline import Pipeline
from tidegate.errors import SettingsError
from tidegate.settings import system as settings
from tidegate.settings.policies import Limit
from tidegate.settings.system import Action, System, Trigger, protected
from tidegate.sim.draw import drawer
from tidegate.sim.faults import CallFaults, ClientFaults, Faults, ServiceFaults
from tidegate.sim.log import EventLog
from tidegate.sim.loop import Loop
from tidegate.sim.measure import CallTally, ClientTally, ServiceTally, Total
from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.client import Client
from tidegate.sim.parts.door import Door
from tidegate.sim.parts.hedged import HedgedSite
from tidegate.sim.parts.line import Line
from tidegate.sim.parts.replica import Replica
from tidegate.sim.parts.service import Service
from tidegate.sim.parts.steps import Step, Steps
from tidegate.sim.parts.work import NEVER
from tidegate.sim.rng import Streams
from tidegate.sim.spans import SpanRecorder
from tidegate.units import SECOND, Duration, Instant

__all__ = ["World"]

_RAMP_STEPS: Final = 20  # a ramp is a staircase; 5 % a step is below the noise of a second's count
_LIMIT_MAX: Final = 1_000_000  # of a `Limit`
_ROUNDS_MAX: Final = 200  # by then half of it must be gone: each round 0.35 % less
_GROWN: Final = 1e6


@final
class World:
    """One run of a system. `horizon` bounds how far it can run; tallies are sized by it."""

    def __init__(
        self,
        system: System,
        *,
        seed: int,
        horizon: Duration,
        log: EventLog | None = None,
        spans: SpanRecorder | None = None,
    ) -> None:
        _refuse_what_never_ends(system)
        self.system: Final = protected(system)
        self.seed: Final = seed
        self.horizon: Final = horizon
        self.log: Final = log
        self.spans: Final = spans
        self.loop: Final = Loop()
        self.clients: Final[dict[str, Client]] = {}
        self.services: Final[dict[str, Service]] = {}
        self.sites: Final[dict[str, list[CallSite]]] = {}
        self.calls: Final[dict[str, CallTally]] = {}
        self._steps: Final[dict[str, list[Step]]] = {}
        self._streams: Final = Streams(seed)
        self._inherits: Final = self._who_inherits_a_deadline()
        self._effects: Final = self._who_works_on_effects()
        self._build()
        self._faults: Final = self._make_faults()
        self._totals: Final = self._find_totals()
        # How often each trigger has begun or ended: a ramp stops when its trigger has moved on.
        self._turns: Final[dict[str, int]] = {}
        self._second = 0  # the one that is being counted
        for client in self.clients.values():
            client.start(0)
        self.loop.first_at(0, self._tick)

    @property
    def now(self) -> Instant:
        """Where the run stands."""
        return self.loop.now

    def run(self, until: Instant) -> None:
        """Go on until then; the horizon is the end of the world."""
        assert until <= self.horizon, "beyond the horizon that the tallies were sized for"
        self.loop.run(until)
        for total in self._totals:
            total.note(self._second)

    def begin(self, name: str, trigger: Trigger) -> None:
        """`trigger` begins now; with a ramp it grows to full strength over that time."""
        self._begin(self.loop.now, (name, trigger))

    def end(self, name: str, trigger: Trigger) -> None:
        """`trigger` ends now, all at once, however far it had come."""
        self._end(self.loop.now, (name, trigger))

    def plan(self, name: str, trigger: Trigger, at: Instant) -> Instant | None:
        """Let `trigger` begin at that instant and end by itself; returns its end, if it has one."""
        self.loop.at(at, self._begin, (name, trigger))
        if trigger.for_ is None:
            return None
        self.loop.at(at + trigger.for_, self._end, (name, trigger))
        return at + trigger.for_

    def act(self, name: str, action: Action) -> None:
        """Do what `action` says, now."""
        now = self.loop.now
        self._note(now, "action", name, "taken")
        if action.ends is not None:
            self.end(action.ends, self.system.triggers[action.ends])
        elif action.client is not None:
            self._act_on_client(now, action.client, action)
        elif action.service is not None:
            self._act_on_service(now, action.service, action)
        else:
            assert action.call is not None
            self._act_on_call(now, action.call, action)

    # Private parts: assembling.

    def _build(self) -> None:
        for name, service in self.system.services.items():
            luck = self._streams.stream(f"balance/{name}")
            tally = ServiceTally(self.horizon)
            self.services[name] = Service(name, service, luck, tally)
        for name, service in self.system.services.items():
            self._add_replicas(name, service)
        for name, client in self.system.clients.items():
            self.clients[name] = self._client(name, client)

    def _add_replicas(self, name: str, service: settings.Service) -> None:
        pool = self.services[name]
        shared = service.balance == "shared_queue"
        before = self._before_workers(name, service, service.replicas) if shared else None
        for index in range(service.replicas):
            part = f"{name}/{index}"
            line, limiter, door = before or self._before_workers(name, service, 1)
            pool.add(
                Replica(
                    pool,
                    service,
                    line=line,
                    limiter=limiter,
                    door=door,
                    draw=drawer(service.time, self._streams.stream(f"service/{part}")),
                    steps=self._calls_of(part, name, service.calls, parallel=service.parallel),
                    loop=self.loop,
                    luck=self._streams.stream(f"errors/{part}"),
                    log=self.log,
                    spans=self.spans,
                )
            )
        pool.complete()

    def _before_workers(
        self, name: str, service: settings.Service, replicas: int
    ) -> tuple[Line, ConcurrencyLimiter | None, Door | None]:
        """What stands before the workers of so many replicas: a line, and what admits to it."""
        limiter = door = None
        if service.limit is not None:
            limiter = ConcurrencyLimiter(_times(service.limit, replicas))
        if service.admission is not None:
            callers = [
                call
                for _, _, calls in self.system.callers()
                for call, record in calls.items()
                if self.system.target_of(call, record) == name
            ]
            door = Door(
                service.admission,
                _times(service.admission.limit, replicas),
                places=service.admission.queue * replicas,
                fair=len(callers) > 1,
            )
        return Line(service, replicas=replicas), limiter, door

    def _client(self, name: str, client: settings.Client) -> Client:
        steps = self._calls_of(name, name, client.calls, parallel=False)
        first = steps.entries[0]
        single = len(steps.entries) == 1 and first.per_request == 1 and not first.site.optional
        luck = self._streams.stream(f"client/{name}")
        think = drawer(client.think, self._streams.stream(f"think/{name}"))
        return Client(
            name,
            rate=client.rate,
            users=client.users or 0,
            think=(lambda: int(think())) if client.users else None,
            steps=steps,
            only=first.site if single else None,
            patience=_patience(client),
            loop=self.loop,
            luck=luck,
            tally=ClientTally(self.horizon),
        )

    def _calls_of(
        self, part: str, caller: str, calls: dict[str, settings.Call], *, parallel: bool
    ) -> Steps:
        entries = []
        for name, call in calls.items():
            site = self._site(part, caller, name, call)
            entry = Step(site, float(call.per_request), call.wait)
            self._steps.setdefault(name, []).append(entry)
            entries.append(entry)
        return Steps(entries, self._streams.stream(f"calls/{part}"), parallel=parallel)

    def _site(self, part: str, caller: str, name: str, call: settings.Call) -> CallSite:
        tally = self.calls.setdefault(name, CallTally(self.horizon))
        network = None
        if call.network is not None:
            draw = drawer(call.network, self._streams.stream(f"network/{part}/{name}"))
            network = lambda: int(draw())  # noqa: E731 - a draw in whole nanoseconds
        pipeline = Pipeline(call, Random(f"{self.seed}/policy/{part}/{name}"))
        make = CallSite if pipeline.hedge is None else HedgedSite
        site = make(
            name,
            call,
            pipeline=pipeline,
            target=self.services[self.system.target_of(name, call)],
            loop=self.loop,
            tally=tally,
            network=network,
            log=self.log,
            spans=self.spans,
            inherits_deadline=caller in self._inherits,
            carries_effects=not call.idempotent or caller in self._effects,
        )
        self.sites.setdefault(name, []).append(site)
        return site

    def _who_inherits_a_deadline(self) -> frozenset[str]:
        return frozenset(
            self.system.target_of(name, call)
            for _, _, calls in self.system.callers()
            for name, call in calls.items()
            if call.propagate
        )

    def _who_works_on_effects(self) -> frozenset[str]:
        """Services that are asked, directly or from further up, for what must not be done twice."""
        reached: set[str] = set()
        for _ in self.system.services:
            for _, caller, calls in self.system.callers():
                for name, call in calls.items():
                    if not call.idempotent or caller in reached:
                        reached.add(self.system.target_of(name, call))
        return frozenset(reached)

    def _make_faults(self) -> dict[tuple[str, str], Faults]:
        faults: dict[tuple[str, str], Faults] = {}
        for name, client in self.clients.items():
            faults["client", name] = ClientFaults(client)
        for name, service in self.services.items():
            said = self.system.services[name]
            faults["service", name] = ServiceFaults(service, said.errors, said.rate_limit)
        for _, _, calls in self.system.callers():
            for name, call in calls.items():
                faults["call", name] = CallFaults(
                    self.sites[name], self._steps[name], call.rate_limit
                )
        return faults

    def _find_totals(self) -> list[Total]:
        tallies = (
            *(client.tally for client in self.clients.values()),
            *(service.tally for service in self.services.values()),
            *self.calls.values(),
        )
        return [total for tally in tallies for total in tally.totals]

    # Private parts: triggers and actions.

    def _begin(self, now: Instant, what: tuple[str, Trigger]) -> None:
        name, trigger = what
        self._note(now, "trigger", name, "begins")
        if trigger.per_request is not None:
            self._count_calls()
        turn = self._turns[name] = self._turns.get(name, 0) + 1
        if not trigger.ramp:
            self._faults_of(trigger).set(now, name, trigger, 1.0)
            return
        for step in range(_RAMP_STEPS):
            when = now + trigger.ramp * step // _RAMP_STEPS
            self.loop.at(when, self._rise, (name, trigger, (step + 1) / _RAMP_STEPS, turn))

    def _rise(self, now: Instant, what: tuple[str, Trigger, float, int]) -> None:
        name, trigger, strength, turn = what
        if self._turns[name] == turn:
            self._faults_of(trigger).set(now, name, trigger, strength)

    def _end(self, now: Instant, what: tuple[str, Trigger]) -> None:
        name, trigger = what
        self._note(now, "trigger", name, "ends")
        self._turns[name] = self._turns.get(name, 0) + 1
        self._faults_of(trigger).set(now, name, trigger, 0.0)

    def _faults_of(self, trigger: Trigger) -> Faults:
        return self._faults[trigger.target_kind, trigger.target]

    def _act_on_client(self, now: Instant, name: str, action: Action) -> None:
        faults = self._faults["client", name]
        assert isinstance(faults, ClientFaults)
        if action.load is not None:
            faults.load = action.load
        faults.apply(now)

    def _act_on_service(self, now: Instant, name: str, action: Action) -> None:
        faults = self._faults["service", name]
        assert isinstance(faults, ServiceFaults)
        if action.capacity is not None:
            faults.capacity = action.capacity
        if action.rate_limit is not None:
            faults.rate = action.rate_limit
        for replica in self.services[name].replicas:
            if action.flush:
                replica.flush(now)
            if action.reset:
                replica.stuck = False
        faults.apply(now)

    def _act_on_call(self, now: Instant, name: str, action: Action) -> None:
        faults = self._faults["call", name]
        assert isinstance(faults, CallFaults)
        if action.rate_limit is not None:
            faults.rate = action.rate_limit
        if action.remove:
            self._count_calls()
            faults.per_request = 0.0
        for site in self.sites[name]:
            if action.open:
                site.pipeline.hold()
            if action.attempts is not None:
                site.limit_attempts(action.attempts)
        faults.apply(now)

    def _count_calls(self) -> None:
        for client in self.clients.values():
            client.count_calls()

    def _note(self, now: Instant, kind: str, name: str, what: str) -> None:
        if self.log is not None:
            self.log.line(now, kind, what, name)

    def _tick(self, now: Instant, _: None) -> None:
        """A second begins."""
        for total in self._totals:
            total.turn(self._second)
        self._second = now // SECOND
        for service in self.services.values():
            service.tally.backlog[self._second] = service.in_system
        self.loop.first_at(now + SECOND, self._tick)


def _refuse_what_never_ends(system: System) -> None:
    """Calls that nobody waits for may go in a circle, if each round makes fewer than the last.

    One request at each service is followed until all its calls are made. After as many steps as
    there are services only circles are left; what does not fade there fills any memory.
    """
    made, first = dict.fromkeys(system.services, 1.0), 0.0
    for step in range(_ROUNDS_MAX * len(system.services)):
        after: dict[str, float] = {}
        for service, count in made.items():
            for name, call in system.services[service].calls.items():
                if call.per_request:
                    callee = system.target_of(name, call)
                    after[callee] = after.get(callee, 0.0) + count * call.per_request
        made, total = after, sum(after.values())
        if step == len(system.services):
            first = total
        if not made or (first and total < first / 2):
            return
        if first and total > first * _GROWN:
            break
    raise SettingsError(
        f"calls go in a circle and never end: {', '.join(sorted(made))}; each round brings as many"
        " again. Say how often one leads to the next (per_request below 100%), or give what calls"
        " back a name of its own",
        path=("services",),
    )


def _times(limit: Limit, replicas: int) -> Limit:
    """The limit of each of so many replicas, for all of them together."""
    if limit.max is not None:
        return Limit(max=min(_LIMIT_MAX, limit.max * replicas))
    law = limit.law
    assert law is not None
    law = msgspec.structs.replace(
        law,
        start=min(_LIMIT_MAX, law.start * replicas),
        min=min(_LIMIT_MAX, law.min * replicas),
        max=min(_LIMIT_MAX, law.max * replicas),
    )
    return msgspec.structs.replace(limit, **{type(law).__name__.lower(): law})


def _patience(client: settings.Client) -> Duration:
    """How long a request may take in all to count as goodput: what its calls may take once each."""
    total = 0
    for call in client.calls.values():
        limit = call.deadline if call.deadline is not None else call.timeout
        if call.wait:
            total += NEVER if limit is None else limit * ceil(call.per_request)
    return total
