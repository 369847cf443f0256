"""What does the storm do to real processes?

The service is a process of its own. Its clients are in this one, or in as many as are asked for,
each with its share of one plan; they meet the same instants, since all of a machine's processes
read one monotonic clock. A client without a guard is the one of the file, a client with one is the
same behind `tidegate.guard`; our door stands before the service if it has an `admission`.
"""

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from random import Random
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tidegate.lab.process import ServiceProcess
from tidegate.lab.service import Orders
from tidegate.lab.storm import Series, Storm
from tidegate.lab.workers import Counts
from tidegate.loadgen.client import Client, Guarded, Http, guard_for
from tidegate.loadgen.generator import Caller, drive
from tidegate.loadgen.plan import arrivals, poisson
from tidegate.loadgen.record import Record, blank, merged
from tidegate.runtime import clock
from tidegate.runtime.shared.place import VARIABLE
from tidegate.units import MILLISECOND, SECOND, Instant, format_duration

__all__ = ["Part", "live", "sent"]

_COME_UP: Final = 300 * MILLISECOND  # from the plan to the first start
_ALL_UP: Final = 5 * SECOND  # the same when processes are to be started first
_STARVED: Final = 0.02  # of the answers, as of the starts of a saturated generator


class Part(NamedTuple):
    """What one generator sends: every `of`-th start of the plan, from the `number`-th on.

    With `guard` its clients call through one; with `marks` a retry says that it is one.
    """

    storm: Storm
    seed: int
    url: str
    zero: Instant
    guard: bool
    marks: bool = False
    number: int = 0
    of: int = 1


def live(
    storm: Storm,
    seed: int,
    *,
    guard: bool,
    marks: bool = False,
    processes: int = 1,
) -> Series:
    """The storm on this machine, for as long as the story is.

    With `guard` the clients call through a guard that goes by the story's call; with `marks` their
    retries say that they are, as in the simulator they always do; `processes` is how many the
    clients are in. They say how long they wait if the call says so (`propagate`).
    """
    orders = Orders(service=storm.service, seed=seed, late_after=storm.patience // 10)
    with _among_ourselves(), ServiceProcess(orders) as process:
        zero = clock.MONOTONIC.now() + (_COME_UP if processes == 1 else _ALL_UP)
        process.slow(storm.slowdown, at=zero + storm.before)
        process.slow(1.0, at=zero + storm.before + storm.lasts)
        parts = [
            Part(storm, seed, process.url, zero, guard, marks, number, processes)
            for number in range(processes)
        ]
        record = sent(parts[0]) if processes == 1 else _sent_by_many(parts)
        counts = process.counts()
    seconds = storm.whole // SECOND
    return Series(
        record.offered[:seconds],
        record.good[:seconds],
        record.eventual[:seconds],
        record.attempts[:seconds],
        seed,
        _doubts(record, counts),
    )


@contextmanager
def _among_ourselves() -> Iterator[None]:
    """Our guards share their state with each other and with nobody else on this host: a circuit
    that opens in here must open in no service.
    """
    before = os.environ.get(VARIABLE)
    with TemporaryDirectory(prefix="tidegate-lab-") as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before


def sent(part: Part) -> Record:
    """Send it, and say what came back."""
    return asyncio.run(_sent(part))


def _sent_by_many(parts: list[Part]) -> Record:
    """Each part from a process of its own."""
    with ProcessPoolExecutor(len(parts), mp_context=get_context("spawn")) as pool:
        return merged(list(pool.map(sent, parts)))


async def _sent(part: Part) -> Record:
    storm, seed = part.storm, part.seed
    plan = arrivals(storm.plan, poisson(Random(f"{seed}/arrivals")))
    starts = islice(plan, part.number, None, part.of)
    timeout = storm.call.timeout if storm.call.propagate else None
    async with Http(part.url, marks=part.marks, patience=timeout) as http:
        caller: Caller
        if part.guard:
            caller = Guarded(guard_for(storm.call_name, storm.call), http)
        else:
            caller = Client(storm.call, http, Random(f"{seed}/{part.number}/backoff"))
        record = blank(storm.whole, storm.patience)
        return await drive(starts, caller, record, zero=part.zero)


def _doubts(record: Record, counts: Counts) -> str:
    """Why these figures may be those of a busy machine; nothing if they are not."""
    doubts = [record.says] if record.saturated else []
    if counts.tardy > _STARVED * counts.served:
        doubts.append(
            f"the service did not get the processor in time: {counts.tardy:,} of"
            f" {counts.served:,} answers were late by its fault (the latest"
            f" {format_duration(counts.latest)})"
        )
    return "; ".join(doubts)
