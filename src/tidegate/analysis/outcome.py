"""Is it well again, still coming back, swinging, or stuck?

A client is *recovered* from the first second after the trigger's end from which on it was served at
or above the objective for 30 s running. If it is not, the backlog decides: falling means *slow to
drain*, with an estimate of the end; else the failure outlives its trigger and *sticks*. Goodput
that crosses the objective again and again *oscillates*.
"""

from math import sqrt
from typing import Final, NamedTuple

from tidegate.findings import Outcome
from tidegate.sim.world import World
from tidegate.units import SECOND, Duration, Instant

__all__ = ["SEVERITY", "Verdict", "Watch", "served_well", "verdict_of", "worst"]

_RUNNING: Final = 30  # seconds in a row, as the objective is defined
_TREND: Final = 60  # seconds over which the backlog's drift is judged
_SIGMAS: Final = 3.0
_CROSSINGS: Final = 6  # three times down and up again: it swings

SEVERITY: Final[dict[Outcome, int]] = {
    "unharmed": 0,
    "recovers": 1,
    "slow to drain": 2,
    "oscillates": 3,
    "sticks": 4,
}


def worst(outcomes: "list[Outcome]") -> Outcome:
    """The worst of several outcomes; `unharmed` of none."""
    return max(outcomes, key=SEVERITY.__getitem__, default="unharmed")


def served_well(good: int, offered: int, objective: float) -> bool:
    """Whether one second's goodput is at the objective, give or take two standard deviations.

    Without the allowance, a second of ten requests would fail an objective of 95 % by one of them.
    """
    slack = 2 * sqrt(offered * objective * (1 - objective))
    return good >= objective * offered - slack


class Verdict(NamedTuple):
    """The outcome of a run; times in seconds after the trigger's end."""

    outcome: Outcome
    by_client: dict[str, Outcome]
    recovered_after: dict[str, float | None]
    finishes_after: float | None


class Watch:
    """Looks at a running world, from the trigger's start on.

    `lag` is how long a request's fate may stay open; younger seconds are not judged.
    """

    def __init__(self, world: World, *, start: Instant, end: Instant, lag: Duration) -> None:
        self.world: Final = world
        self.lag: Final = lag
        self.start: Final = start // SECOND
        self.end: Final = -(-end // SECOND)
        self.objective: Final = world.system.objective.goodput

    def seconds_known(self) -> int:
        """The first second that is still too young to judge."""
        return (self.world.now - self.lag) // SECOND

    def recovered_at(self, client: str) -> int | None:
        """The first second after the trigger's end of 30 good ones in a row; None if none."""
        tally = self.world.clients[client].tally
        run = offered = good = 0
        for second in range(self.end, self.seconds_known()):
            if not served_well(tally.good[second], tally.offered[second], self.objective):
                run = offered = good = 0
                continue
            run += 1
            offered += tally.offered[second]
            good += tally.good[second]
            if run >= _RUNNING and good >= self.objective * offered:
                return second - run + 1
        return None

    def all_recovered(self) -> bool:
        """Whether every client is."""
        return all(self.recovered_at(name) is not None for name in self.world.clients)

    def harmed(self, client: str) -> bool:
        """Whether the client was below its objective in more than a second or two of the trigger.

        One second in twenty is within the allowance of two standard deviations.
        """
        tally = self.world.clients[client].tally
        seconds = range(self.start, min(self.end, self.seconds_known()))
        bad = sum(not served_well(tally.good[s], tally.offered[s], self.objective) for s in seconds)
        return bad > max(1, len(seconds) // 20)

    def backlog(self, second: int) -> int:
        """Requests waiting or in service anywhere."""
        return sum(service.tally.backlog[second] for service in self.world.services.values())

    def drift(self) -> tuple[float, float]:
        """The backlog's drift per second over the last minute, and its standard deviation.

        Arrivals and departures are counted as Poisson, which is what a queue's noise is made of.
        """
        last = self.world.now // SECOND - 1
        first = max(self.end, last - _TREND)
        span = max(1, last - first)
        moves = sum(
            sum(service.tally.arrived[first:last]) + sum(service.tally.served[first:last])
            for service in self.world.services.values()
        )
        drift = (self.backlog(last) - self.backlog(first)) / span
        return drift, sqrt(max(1, moves)) / span

    def draining(self) -> bool:
        """Whether the backlog is falling, beyond what luck explains."""
        drift, noise = self.drift()
        return drift < -_SIGMAS * noise

    def hopeless(self) -> bool:
        """Whether more of the same can change nothing: nobody is served and the backlog grows.

        A minute without goodput for some client, while the backlog rises beyond what luck explains.
        """
        known = self.seconds_known()
        if known < self.end + _TREND:
            return False
        drift, noise = self.drift()
        return drift > _SIGMAS * noise and any(
            sum(client.tally.good[known - _TREND : known]) == 0
            and sum(client.tally.offered[known - _TREND : known]) > 0
            for client in self.world.clients.values()
        )

    def swings(self, client: str) -> bool:
        """Whether goodput has crossed the objective again and again since the trigger's end."""
        tally = self.world.clients[client].tally
        crossings, above = 0, False
        for second in range(self.end, self.seconds_known() - 4, 5):
            good = sum(tally.good[second : second + 5])
            offered = sum(tally.offered[second : second + 5])
            now_above = served_well(good, offered, self.objective)
            crossings += now_above != above
            above = now_above
        return crossings >= _CROSSINGS


def verdict_of(watch: Watch) -> Verdict:
    """What the run has shown so far."""
    by_client: dict[str, Outcome] = {}
    after: dict[str, float | None] = {}
    draining = watch.draining()
    for name in watch.world.clients:
        second = watch.recovered_at(name)
        after[name] = None if second is None else float(second - watch.end)
        if second is not None:
            by_client[name] = "recovers" if watch.harmed(name) or second > watch.end else "unharmed"
        elif draining:
            by_client[name] = "slow to drain"
        else:
            by_client[name] = "oscillates" if watch.swings(name) else "sticks"
    outcome = worst(list(by_client.values()))
    finish = None
    if outcome == "slow to drain":
        drift, _ = watch.drift()
        last = watch.world.now // SECOND - 1
        finish = last - watch.end + watch.backlog(last) / -drift
    known = [value for value in after.values() if value is not None]
    # A run that did come back, but only after its backlog had drained, took as long as that.
    if finish is None and known and outcome == "recovers":
        finish = max(known)
    return Verdict(outcome, by_client, after, finish)
