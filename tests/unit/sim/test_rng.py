"""Every part of a model has its own luck, and the same luck in every process."""

import subprocess
import sys

from tidegate.sim.rng import Streams


def draws(streams: Streams, name: str, count: int = 5) -> list[float]:
    return [streams.stream(name).random() for _ in range(count)]


def test_the_same_seed_and_name_give_the_same_luck() -> None:
    assert draws(Streams(7), "client/readers") == draws(Streams(7), "client/readers")


def test_another_seed_or_name_gives_other_luck() -> None:
    luck = {tuple(draws(Streams(seed), name)) for seed in (7, 8) for name in ("a", "b")}
    assert len(luck) == 4


def test_a_new_part_leaves_the_luck_of_the_old_ones() -> None:
    alone, joined = Streams(7), Streams(7)
    first = draws(joined, "old", 2)
    draws(joined, "new", 100)
    assert first + draws(joined, "old", 3) == draws(alone, "old", 5)


def test_the_luck_does_not_hang_on_the_hash_seed_of_a_process() -> None:
    script = "from tidegate.sim.rng import Streams; print(Streams(7).stream('a').random())"
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    }
    assert said == {f"{Streams(7).stream('a').random()}\n"}
