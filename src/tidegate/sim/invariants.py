"""What must hold in every run, at every instant?

Nothing is lost and nothing is counted twice: whatever arrived has been answered, refused, dropped,
cancelled, or is still here; whatever was sent has ended or is still out. No worker rests while
somebody waits. The policies have kept their bounds. A run that breaks one of these tells nothing
about a system, whatever its figures say, so every run is checked when it ends.
"""

from collections.abc import Iterator
from typing import Final

from tidegate.errors import InvariantError
from tidegate.settings.system import Call
from tidegate.sim.measure import CallTally, ClientTally, Total
from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.replica import Replica
from tidegate.sim.parts.service import Service
from tidegate.sim.world import World
from tidegate.units import format_duration

__all__ = ["check"]

_ROUNDING: Final = 1e-6  # a budget counts in millionths of a token


def check(world: World) -> None:
    """Raise InvariantError, with the seed, the instant and the last events, unless all holds."""
    broken = next(_broken(world), None)
    if broken is None:
        return
    lines = "".join(world.log.tail) if world.log is not None else "run it with a log to see more\n"
    raise InvariantError(
        f"at {format_duration(world.now)} of the run with seed {world.seed}: {broken}\n{lines}"
    )


def _broken(world: World) -> Iterator[str]:
    for name, client in world.clients.items():
        yield from (f"client {name}: {what}" for what in _client(client.tally))
    for name, service in world.services.items():
        yield from (f"service {name}: {what}" for what in _service(service))
    for _, _, calls in world.system.callers():
        for name, call in calls.items():
            tally, sites = world.calls[name], world.sites[name]
            yield from (f"call {name}: {what}" for what in _call(tally, sites))
            yield from (f"call {name}: {what}" for what in _policies(world.now, call, tally, sites))


def _client(tally: ClientTally) -> Iterator[str]:
    yield from _total("offered", tally.requests)
    seconds = zip(tally.offered, tally.eventual, tally.failed, tally.good, strict=True)
    for second, (offered, eventual, failed, good) in enumerate(seconds):
        if not (0 <= good <= eventual and failed >= 0 and eventual + failed <= offered):
            yield (
                f"second {second}: {offered} offered, {eventual} answered ({good} in time),"
                f" {failed} failed"
            )


def _service(service: Service) -> Iterator[str]:
    for index, replica in enumerate(service.replicas):
        yield from (f"replica {index}: {what}" for what in _replica(replica))
    tally = service.tally
    arrived, served = tally.arrivals.count, tally.finished.count
    refused, inside = tally.refusals.count, service.in_system
    if arrived != served + refused + tally.dropped + tally.cancelled + inside:
        yield (
            f"{arrived} arrived, and {served} served + {refused} refused + {tally.dropped} dropped"
            f" + {tally.cancelled} cancelled + {inside} inside is not that"
        )
    if not 0 <= tally.wasted.count <= served or min(tally.dropped, tally.cancelled, inside) < 0:
        yield f"a count out of range: {tally.wasted.count} of {served} late"
    for total in tally.totals:
        yield from _total("a series", total)
    yield from _admitted(service)


def _replica(replica: Replica) -> Iterator[str]:
    line = replica.line
    if not 0 <= replica.refusing <= replica.busy or replica.calling < 0:
        yield f"{replica.busy} workers busy, {replica.refusing} refusing, {replica.calling} calling"
    if not 0 <= line.gone <= len(line.items):
        yield f"{line.gone} gone of a line of {len(line.items)}"
    if replica.busy < replica.workers and (line.waiting or line.refusals):
        yield f"{replica.workers - replica.busy} workers rest while {line.waiting} wait"


def _admitted(service: Service) -> Iterator[str]:
    """A limit or an admission at the door counts those inside, each once."""
    for limiter in {replica.limiter for replica in service.replicas}:
        if limiter is not None:
            here = [replica for replica in service.replicas if replica.limiter is limiter]
            yield from _counted(limiter.inflight, here)
    for door in {replica.door for replica in service.replicas}:
        if door is not None:
            here = [replica for replica in service.replicas if replica.door is door]
            yield from _counted(door.inside, here)
            if door.could_let_in():
                yield f"{door.waiting} wait at a door that could let them in"


def _counted(counted: int, here: list[Replica]) -> Iterator[str]:
    lines = {replica.line for replica in here}
    inside = sum(one.holding for one in here) + sum(line.waiting for line in lines)
    if counted != inside:
        yield f"the limit counts {counted} where {inside} are inside"


def _call(tally: CallTally, sites: list[CallSite]) -> Iterator[str]:
    sent, begun = tally.sent.count, tally.begun.count
    yield from _total("calls", tally.begun)
    yield from _total("attempts", tally.sent)
    if tally.ended > sent:
        yield f"{sent} attempts sent, {tally.ended} ended"
    attempts = max(site.attempts_most for site in sites)
    if sent > begun * attempts:
        yield f"{sent} attempts for {begun} calls of at most {attempts} each"


def _policies(now: int, call: Call, tally: CallTally, sites: list[CallSite]) -> Iterator[str]:
    if call.paid_from is not None:
        # Every caller may retry once before it has deposited anything.
        ratio = call.paid_from.ratio
        allowed = ratio * tally.begun.count + (len(sites) if ratio else 0)
        retried = 0
        for site in sites:
            assert site.pipeline.budget is not None
            budget = site.pipeline.budget.snapshot(now)
            retried += budget.retried
            if not 0 <= budget.tokens <= budget.cap:
                yield f"a budget holds {budget.tokens} tokens of {budget.cap}"
        if retried > allowed + _ROUNDING:
            yield f"the budget let {retried} retry, of {allowed}"
    if call.limit is not None and not any(site.paused for site in sites):
        inflight = sum(site.pipeline.limiter.inflight for site in sites if site.pipeline.limiter)
        if inflight != tally.sent.count - tally.ended:
            yield f"the limit counts {inflight} of {tally.sent.count - tally.ended} in flight"


def _total(name: str, total: Total) -> Iterator[str]:
    if sum(total.by_second) != total.count or min(total.by_second) < 0:
        yield f"{name}: the seconds sum to {sum(total.by_second)}, the total is {total.count}"
