"""Hosts that share a budget and a hold through a server, with the server in a dictionary."""

import logging
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from host_rig import NAME, Process, host

from tidegate.core.outcome import REJECTIONS, SUCCESS, Reason
from tidegate.errors import InputError
from tidegate.runtime.shared import remote
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.hold import release
from tidegate.runtime.shared.owner import this_process
from tidegate.runtime.shared.remote import EVERY, OtherHosts, host_id, pause
from tidegate.runtime.shared.store import Answer, Command, Counts, StoreAwayError
from tidegate.runtime.shared.table import Table
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND, Duration

CALL = Call(attempts=2, budget=policies.Budget())
WALL = 1_750_000_000.0


class Server:
    """What hosts leave for each other."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, Counts]] = {}
        self.commands: dict[str, tuple[Command, Duration | None]] = {}
        self.away = False
        self.trips = 0

    def exchange(self, host: str, told: Mapping[str, Counts]) -> dict[str, Answer]:
        self.trips += 1
        if self.away:
            raise StoreAwayError("away")
        for name, counts in told.items():
            self.counts.setdefault(name, {})[host] = counts
        return {
            name: Answer(dict(self.counts[name]), *self.commands.get(name, (None, None)))
            for name in told
        }

    def send(self, name: str, command: Command, duration: Duration | None) -> None:
        self.commands[name] = (command, duration)


class Host:
    """A host with some processes, and the thread of one of them by hand."""

    def __init__(self, base: Path, server: Server, size: int = 2) -> None:
        self.processes = host(base, CALL, size)
        self.base = base
        self.hosts = OtherHosts(
            base,
            server,
            base.name,
            lambda: [NAME],
            who=lambda: this_process()._replace(namespace=1),
        )

    def request(self, now: int, times: int) -> None:
        for process in self.processes:
            process.request(now, SUCCESS, times)
            process.lane.look(now)

    def step(self, now: int) -> None:
        self.hosts.step(now, WALL)
        for process in self.processes:
            process.lane.look(now)

    def retries(self, now: int, tries: int = 100) -> int:
        return sum(process.retries(now, tries) for process in self.processes)

    def is_held(self, now: int) -> bool:
        answers = {process.pipeline.admit(now, 0) for process in self.processes}
        return answers == {REJECTIONS[Reason.HELD]}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def two(tmp_path: Path, server: Server) -> tuple[Host, Host]:
    return Host(tmp_path / "a", server), Host(tmp_path / "b", server)


def rounds(hosts: tuple[Host, ...], now: int = 0) -> None:
    for _ in range(2):
        for one in hosts:
            one.step(now)


# The budget.


def test_what_one_host_saved_another_may_spend(two: tuple[Host, Host]) -> None:
    one, other = two
    rounds(two)
    one.request(0, 100)
    rounds(two)
    assert other.retries(0) == 20
    rounds(two)
    assert one.retries(0) == 0


def test_hosts_that_overdraw_while_they_have_not_heard_owe_it(two: tuple[Host, Host]) -> None:
    one, other = two
    rounds(two)
    assert one.retries(0) + other.retries(0) == 2  # the first token of each
    rounds(two)
    one.request(0, 5)  # ten requests: one token, which is owed
    rounds(two)
    assert one.retries(MILLISECOND) + other.retries(MILLISECOND) == 0
    one.request(MILLISECOND, 5)
    one.request(MILLISECOND, 5)
    rounds(two, MILLISECOND)
    assert one.retries(2 * MILLISECOND) + other.retries(2 * MILLISECOND) > 0


def test_counts_of_another_host_do_not_come_back_as_one_s_own(
    two: tuple[Host, Host], server: Server
) -> None:
    one, other = two
    rounds(two)
    one.request(0, 50)
    for tick in range(20):
        rounds(two, tick)
    assert server.counts[NAME]["a"].requests == 100
    assert server.counts[NAME]["b"].requests == 0
    assert other.processes[0].table.total(t.REQUESTS) == 0
    assert sum(other.processes[0].table.column(t.REQUESTS)) == 100


def test_a_host_that_comes_late_does_not_get_what_was_saved_before(
    tmp_path: Path, server: Server
) -> None:
    one = Host(tmp_path / "a", server)
    one.request(0, 500)
    one.step(0)
    late = Host(tmp_path / "b", server)
    rounds((one, late))
    assert late.retries(0) == 1


def test_a_host_that_begins_anew_is_not_counted_backwards(
    two: tuple[Host, Host], server: Server
) -> None:
    one, other = two
    rounds(two)
    one.request(0, 50)
    rounds(two)
    server.counts[NAME]["a"] = Counts(0, 0, 0, 0)
    other.step(0)
    assert sum(other.processes[0].table.column(t.REQUESTS)) == 100
    server.counts[NAME]["a"] = Counts(10, 1_000_000, 0, 10)
    other.step(0)
    assert sum(other.processes[0].table.column(t.REQUESTS)) == 110


def test_what_a_host_had_in_the_window_ends_with_it(two: tuple[Host, Host]) -> None:
    one, other = two
    rounds(two)
    one.request(0, 100)
    other.step(0)
    at = other.hosts._guards[NAME].row.at
    words = other.processes[0].table.words
    one.step(0)
    other.step(0)
    assert words[at + t.RECENT] == 200
    other.step(10 * SECOND)
    assert words[at + t.RECENT] == 0


def test_one_process_of_a_host_speaks_and_another_when_it_is_gone(
    tmp_path: Path, server: Server
) -> None:
    first = Host(tmp_path / "a", server)
    second = OtherHosts(
        first.base,
        server,
        "a",
        lambda: [NAME],
        who=lambda: this_process()._replace(namespace=2),
    )
    first.step(0)
    second.step(0, WALL)
    assert server.trips == 1
    row = first.hosts._guards[NAME].row
    assert first.processes[0].table.bury(row.index, row._owner)  # type: ignore[arg-type]
    second.step(SECOND, WALL)
    assert server.trips == 2
    first.hosts.step(SECOND, WALL)
    assert server.trips == 2
    assert first.processes[0].table.overflow == 0


def test_a_server_that_is_away_changes_nothing(two: tuple[Host, Host], server: Server) -> None:
    one, _ = two
    rounds(two)
    one.request(0, 50)
    server.away = True
    with pytest.raises(StoreAwayError):
        one.step(0)
    assert one.retries(0) == 10
    server.away = False
    rounds(two)
    assert server.counts[NAME]["a"].retried == 10


def test_a_host_that_is_forgotten_is_forgotten(two: tuple[Host, Host], server: Server) -> None:
    rounds(two)
    del server.counts[NAME]["b"]
    two[0].step(0)
    assert two[0].hosts._guards[NAME].seen == {}


def test_a_table_that_was_removed_is_found_again(two: tuple[Host, Host], server: Server) -> None:
    one, other = two
    rounds(two)
    next(iter(next(path for path in one.base.iterdir() if path.is_dir()).glob("*"))).unlink()
    rounds(two, 2 * SECOND)
    other.request(2 * SECOND, 50)
    rounds(two, 2 * SECOND)
    assert sum(one.processes[0].lane._row.table.column(t.REQUESTS)) == 100


# Holds.


def command(number: int, *, held: bool) -> Command:
    return Command(number, held, "moved", "ada", WALL)


def test_a_command_is_obeyed_once_on_every_host(two: tuple[Host, Host], server: Server) -> None:
    server.send(NAME, command(7, held=True), None)
    rounds(two)
    assert all(one.is_held(0) for one in two)
    release(two[0].base, NAME, author="bob", now=0, wall=WALL)  # on this host alone
    rounds(two, SECOND)
    assert [one.is_held(SECOND) for one in two] == [False, True]
    server.send(NAME, command(8, held=False), None)
    rounds(two, 2 * SECOND)
    assert [one.is_held(2 * SECOND) for one in two] == [False, False]


def test_a_hold_lasts_as_long_as_the_server_says(two: tuple[Host, Host], server: Server) -> None:
    server.send(NAME, command(7, held=True), 60 * SECOND)
    rounds(two, SECOND)
    hold = two[1].processes[0].table.hold()
    assert hold is not None
    assert (hold.until, hold.until_wall, hold.author) == (61 * SECOND, WALL + 60, "ada")
    rounds(two, 61 * SECOND)
    assert not any(one.is_held(61 * SECOND) for one in two)


def test_a_server_that_has_lost_its_memory_releases_nothing(
    two: tuple[Host, Host], server: Server
) -> None:
    server.send(NAME, command(7, held=True), None)
    rounds(two)
    server.commands.clear()
    server.counts.clear()
    rounds(two, SECOND)
    assert all(one.is_held(SECOND) for one in two)


def test_what_other_hosts_command_is_on_record(two: tuple[Host, Host], server: Server) -> None:
    server.send(NAME, command(7, held=True), None)
    rounds(two)
    server.send(NAME, command(8, held=False), None)
    rounds(two)
    server.send(NAME, command(9, held=False), None)  # of what is not held
    rounds(two)
    lines = (two[1].base / "audit.jsonl").read_text().splitlines()
    assert [line.split('"what": ')[1].split(",")[0] for line in lines] == ['"hold"', '"release"']


def test_a_process_that_starts_after_the_command_obeys_and_does_not_repeat_it(
    tmp_path: Path, server: Server
) -> None:
    server.send(NAME, command(7, held=True), None)
    first = Host(tmp_path / "a", server)
    first.step(0)
    version = first.processes[0].table.hold_version
    again = OtherHosts(
        first.base, server, "a", lambda: [NAME], who=lambda: this_process()._replace(namespace=1)
    )
    again.step(SECOND, WALL)
    assert first.processes[0].table.hold_version == version
    assert Process(first.base, CALL, SECOND, 9).pipeline.held


# The thread.


def test_the_pause_grows_has_a_bound_and_is_never_the_same() -> None:
    assert pause(Random(1), 0) == EVERY
    assert all(SECOND // 2 <= pause(Random(seed), 1) < SECOND for seed in range(50))
    far = {pause(Random(seed), 1_000) for seed in range(50)}
    assert len(far) == 50
    assert all(15 * SECOND <= wait < 30 * SECOND for wait in far)


class Stop(BaseException):
    """Ends a thread's loop."""


class Script:
    """A clock whose sleeps are counted, and whose last one ends the loop."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def sleep(self, _: Duration) -> None:
        if not self.steps:
            raise Stop
        self.steps -= 1

    def now(self) -> int:
        return 0


def run(monkeypatch: pytest.MonkeyPatch, base: Path, server: object, steps: int) -> None:
    Table.open(base, NAME)
    monkeypatch.setattr(remote, "open_store", lambda _: server)
    monkeypatch.setattr(remote, "MONOTONIC", Script(steps))
    with pytest.raises(Stop):
        remote._run(base, "valkey://x", [NAME])


def test_an_outage_of_the_server_is_told_once_and_its_end_too(
    tmp_path: Path,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.away = True
    back = iter([False] * 3 + [True] * 2)

    class Flaky:
        def exchange(self, host: str, told: Mapping[str, Counts]) -> dict[str, Answer]:
            server.away = not next(back)
            return server.exchange(host, told)

    with caplog.at_level(logging.WARNING):
        run(monkeypatch, tmp_path / "a", Flaky(), 5)
    assert caplog.messages == [
        "other hosts are not heard, and each goes on alone: away",
        "other hosts are heard again",
    ]


def test_a_bug_of_ours_ends_the_sharing_and_not_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Table.open(tmp_path / "a", NAME)
    monkeypatch.setattr(remote, "open_store", lambda _: None)
    monkeypatch.setattr(remote, "MONOTONIC", Script(5))
    remote._run(tmp_path / "a", "valkey://x", [NAME])
    assert caplog.messages == ["nothing is shared with other hosts any more"]


def test_an_address_that_is_none_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: str) -> None:
        raise InputError("no address")

    Table.open(tmp_path / "a", NAME)
    monkeypatch.setattr(remote, "open_store", refuse)
    remote._run(tmp_path / "a", "x", [NAME])
    assert caplog.messages == ["nothing is shared with other hosts: no address"]


def test_one_thread_speaks_for_all_guards_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    class Thread:
        def __init__(self, **given: object) -> None:
            started.append(given["daemon"])

        def start(self) -> None:
            pass

    monkeypatch.setattr(remote.threading, "Thread", Thread)
    monkeypatch.setattr(remote, "_speaker", remote._Speaker())
    for name in ("a", "b", "a"):
        remote.speak(name, tmp_path, "valkey://x")
    assert started == [True]
    assert remote._speaker.names == ["a", "b"]
    remote._speaker.pid = 1  # as in a fork, where the thread is not
    remote.speak("a", tmp_path, "valkey://x")
    assert started == [True, True]
    assert remote._speaker.names == ["a"]


def test_hosts_and_containers_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert host_id(tmp_path / "a") != host_id(tmp_path / "b")
    assert host_id(tmp_path / "a") == host_id(tmp_path / "a")
