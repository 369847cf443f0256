"""`attempts: 1` beside `protect: default` was tried twice, as if nothing had been said of it.

So the cure "no retries", merged into the file as the report says it, changed nothing.
"""

from tidegate.analysis.check import without_retries
from tidegate.analysis.cures import candidates
from tidegate.analysis.graph import Graph
from tidegate.analysis.loop import binding_service, sustaining_loop
from tidegate.settings.dump import dump
from tidegate.settings.load import loads
from tidegate.settings.system import protected

TEXT = """
tidegate: 1
clients:
  users: {rate: 140/s, calls: {web: {timeout: 500ms, protect: default, budget: 1000%}}}
services:
  web: {workers: 8, time: 40ms}
"""


def test_what_is_said_is_kept() -> None:
    once = loads(TEXT.replace("500ms,", "500ms, attempts: 1,")).system()
    assert protected(once).clients["users"].calls["web"].tries == 1
    assert protected(loads(TEXT).system()).clients["users"].calls["web"].tries == 2
    assert loads(dump(once)).system() == once


def test_no_retries_stays_when_it_is_written_to_the_file() -> None:
    system = protected(loads(TEXT).system())
    graph = Graph(system)
    service = binding_service(graph)
    assert service is not None
    loop = sustaining_loop(graph, service)
    assert loop is not None
    cure = next(c for c in candidates(system, loop, service) if c.name == "no retries")
    assert "attempts: 1" in cure.yaml
    written = TEXT.replace("500ms,", "500ms, attempts: 1,")
    assert protected(loads(written).system()) == cure.system == without_retries(system)
