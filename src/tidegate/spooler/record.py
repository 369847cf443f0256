"""What does a spool keep, one of it and many?

A record is bytes. What they mean is the business of who sends and of who receives them; the spool
looks at none. A key, if there is one, says which records belong together (a Kafka key).
"""

from typing import NamedTuple

__all__ = ["Batch", "Record"]


class Record(NamedTuple):
    """One thing to deliver. `time` is when it was accepted, in nanoseconds since 1970.

    A time is for ages and for people: nothing is put in order by it.
    """

    value: bytes
    key: bytes = b""
    time: int = 0


class Batch(NamedTuple):
    """Records of one lane with consecutive numbers; `first` is the number of the first."""

    first: int
    records: list[Record]

    @property
    def last(self) -> int:
        """The number of the last record."""
        return self.first + len(self.records) - 1

    @property
    def size(self) -> int:
        """Bytes of values and keys. Counted when asked."""
        return sum(len(record.value) + len(record.key) for record in self.records)
