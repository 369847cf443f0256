"""What does a batch say of its records?"""

from tidegate.spooler.record import Batch, Record


def test_a_batch_knows_its_last_number_and_its_size() -> None:
    batch = Batch(7, [Record(b"abc", b"k"), Record(b"")])
    assert (batch.first, batch.last, batch.size) == (7, 8, 4)
