"""Somebody who remembers what a log was given and promised, and looks what is left of it."""

from collections.abc import Iterable, Sequence

from tidegate.spooler.log.log import Log
from tidegate.spooler.record import Record

__all__ = ["Witness", "all_of", "numbers"]


def all_of(log: Log, after: int = 0, max_bytes: int = 700) -> dict[int, Record]:
    """Everything that can be read, by its number, in the order in which it came."""
    found: dict[int, Record] = {}
    while (batch := log.read(after, max_bytes=max_bytes)) is not None:
        assert batch.first > after
        found |= dict(zip(range(batch.first, batch.last + 1), batch.records, strict=True))
        after = batch.last
    return found


class Witness:
    """What was promised: a record that was acknowledged is there until it is delivered.

    Records that were not acknowledged may be there or not; after a loss of power their numbers may
    have been given to others. What was read once under a number is never another record.
    """

    def __init__(self) -> None:
        self.given: dict[int, set[Record]] = {}
        self.now: dict[int, Record] = {}  # of this process
        self.acknowledged: dict[int, Record] = {}
        self.seen: dict[int, Record] = {}
        self.done: set[int] = set()
        self._made = 0

    def records(self, count: int, size: int = 40) -> list[Record]:
        """Records as there were none before."""
        made = []
        for _ in range(count):
            self._made += 1
            made.append(Record(b"%0*d" % (size, self._made), b"k%d" % (self._made % 3), self._made))
        return made

    def on_append(self, first: int, records: Sequence[Record]) -> None:
        """These were appended, or were being appended when it ended."""
        for number, record in enumerate(records, first):
            assert number not in self.acknowledged, "a number was given out twice"
            self.given.setdefault(number, set()).add(record)
            self.now[number] = record

    def on_durable(self, number: int) -> None:
        """All up to this number were acknowledged."""
        self.acknowledged |= {n: record for n, record in self.now.items() if n <= number}

    def on_done(self, numbers: Iterable[int]) -> None:
        """These were delivered, or dropped."""
        self.done |= self.given.keys() & set(numbers)

    def on_end(self) -> None:
        """The process is gone."""
        self.now.clear()

    def look(self, log: Log) -> None:
        """See that every promise is kept, by a log that was just opened or that is in use."""
        found = all_of(log)
        assert list(found) == sorted(found)
        for number, record in found.items():
            assert record in self.given[number], f"{number} is not what was given"
            assert self.seen.setdefault(number, record) == record, f"{number} has changed"
            if number in self.acknowledged:
                assert record == self.acknowledged[number], f"{number} is another record"
        due = self.acknowledged.keys() - self.done
        pending = numbers(log.pending)
        assert due <= pending, f"{sorted(due - pending)} are not to be delivered"
        assert due <= found.keys(), f"{sorted(due - found.keys())} are lost"


def numbers(ranges: Iterable[tuple[int, int]]) -> set[int]:
    """All numbers in these ranges."""
    return {number for first, last in ranges for number in range(first, last + 1)}
