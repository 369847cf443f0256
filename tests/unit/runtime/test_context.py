"""What is inherited only ever gets stricter."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate.errors import SettingsError
from tidegate.runtime import clock
from tidegate.runtime.context import NOTHING, ambient, carry, criticality, deadline, remaining
from tidegate.units import SECOND


class Still:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 5 * SECOND

    def now(self) -> int:
        return self.at

    def sleep(self, wait: int) -> None:
        self.at += wait

    async def wait(self, wait: int) -> None:
        self.at += wait


@pytest.fixture
def still():
    mine = Still()
    before = clock.use(mine)
    yield mine
    clock.use(before)


def test_without_a_block_nothing_is_inherited():
    assert ambient() is NOTHING
    assert remaining() is None
    assert ambient().rank == 1


def test_a_deadline_shortens_and_never_lengthens(still):
    with deadline(2.0) as outer:
        still.at += SECOND
        assert outer.remaining() == remaining() == 1.0
        with deadline(5.0) as inner:
            assert inner.remaining() == 1.0
        with deadline(0.25):
            assert remaining() == 0.25
        assert remaining() == 1.0
        still.at += 9 * SECOND
        assert remaining() == 0
    assert remaining() is None


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), 86_401])
def test_a_deadline_that_is_no_time_is_refused(wrong):
    with pytest.raises(SettingsError, match="a deadline is above 0"):
        deadline(wrong)


def test_criticality_falls_and_never_rises():
    with deadline(1.0), criticality("critical"):
        assert ambient().rank == 0
        with criticality("sheddable"):
            assert ambient().rank == 2
            with criticality("critical"):
                assert ambient().rank == 2
        assert ambient().rank == 0


def test_a_slip_in_a_criticality_names_the_nearest():
    with pytest.raises(SettingsError, match="did you mean 'sheddable'"):
        criticality("shedable")  # type: ignore[arg-type]


def test_an_executor_starts_with_nothing_unless_it_is_carried():
    with ThreadPoolExecutor(1) as pool, criticality("sheddable"):
        bare = pool.submit(lambda: ambient().rank).result()
        carried = pool.submit(carry(lambda: ambient().rank)).result()
    assert (bare, carried) == (1, 2)
