"""What does a sink say of its own health, and is all of it whole?

A broker that accepts connections may still be out of step with its cluster. So a sink is asked for
the state of its replicas by every way there is to it, and each answer is kept with who gave it: one
that differs from the others is how a split cluster shows.
"""

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Health", "Partition", "View", "flaw"]


class Partition(NamedTuple):
    """One replicated part of a sink: a partition of a topic, a stream, a disk.

    `leader` is who takes writes, or None; `replicas` should hold a copy, `in_sync` do.
    """

    name: str
    leader: str | None
    replicas: int
    in_sync: int


class View(NamedTuple):
    """The cluster as one of its members sees it.

    `cluster` and `controller` are its identity and who rules it, empty where there is no such
    thing; `brokers` how many members it knows of.
    """

    seen_from: str
    cluster: str = ""
    controller: str = ""
    brokers: int = 1
    partitions: tuple[Partition, ...] = ()


class Health(NamedTuple):
    """One look at a sink: what each way to it answered, and who did not answer at all.

    A sink that has no replicas to tell of is one view without partitions when it answers.
    """

    views: tuple[View, ...]
    silent: tuple[str, ...] = ()


def flaw(health: Health, brokers: int) -> str | None:
    """The first reason in words why this sink is not whole; None if it is.

    `brokers` is how many members there should be.
    """
    return next(_flaws(health, brokers), None)


def _flaws(health: Health, brokers: int) -> Iterator[str]:
    if not health.views:
        yield "nobody answers" + (f" ({', '.join(health.silent)})" if health.silent else "")
        return
    if health.silent:
        yield f"{health.silent[0]} does not answer"
    for view in health.views:
        if view.brokers < brokers:
            yield f"{view.seen_from} knows {view.brokers} of {brokers} brokers"
        for part in view.partitions:
            if part.leader is None:
                yield f"{part.name} has no leader"
            if part.in_sync < part.replicas:
                yield f"{part.name} has {part.in_sync} of {part.replicas} replicas in step"
    yield from _quarrels(health.views)


def _quarrels(views: tuple[View, ...]) -> Iterator[str]:
    first = views[0]
    for other in views[1:]:
        pair = f"{first.seen_from} and {other.seen_from} disagree"
        if other.cluster != first.cluster:
            yield f"{pair}: they are of two clusters"
        if other.controller != first.controller:
            yield f"{pair} on who rules the cluster"
        theirs = {part.name: part for part in other.partitions}
        for part in first.partitions:
            if part != theirs.get(part.name, part):
                yield f"{pair} on {part.name}"
        if theirs.keys() != {part.name for part in first.partitions}:
            yield f"{pair} on which partitions there are"
