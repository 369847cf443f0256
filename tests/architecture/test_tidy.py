"""The house style, as far as a machine can read it: people follow the rules that a test checks.

Every rule is a function from a file to its faults. The tree must have none, and each rule must see
a small planted one.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "tidegate"
FUNCTION_LINES_MAX = 70
LINE_LENGTH_MAX = 100
TREES = (".ci", "benchmarks", "docs", "examples", "src", "tests")

# Modules that one test file sees through together; every other has a file of its own.
TESTED_TOGETHER = {
    "tests/integration/test_spool_process.py": {
        "cli/spool.py",
        "cli/spool_log.py",
        "spooler/ask.py",
        "spooler/serve.py",
    },
    "tests/unit/spooler/test_lane.py": {
        "spooler/courier.py",
    },
    "tests/unit/spooler/test_spool.py": {
        "spooler/lane_status.py",
    },
    "tests/unit/cli/test_main.py": {
        "__main__.py",
        "cli/check.py",
        "cli/init.py",
        "cli/schema.py",
    },
    "tests/unit/analysis/ingest/test_read.py": {
        "analysis/ingest/jaeger.py",
        "analysis/ingest/otlp.py",
        "analysis/ingest/sink.py",
        "analysis/ingest/span.py",
        "analysis/ingest/write.py",
    },
    "tests/unit/analysis/infer/test_infer.py": {
        "analysis/infer/build.py",
        "analysis/infer/tally.py",
    },
    "tests/unit/analysis/test_spool.py": {"analysis/replays.py"},
    "tests/unit/analysis/test_audit.py": {
        "analysis/rules/edges.py",
        "analysis/rules/pools.py",
        "analysis/rules/retries.py",
        "analysis/rules/times.py",
    },
    "tests/unit/analysis/source/test_audit.py": {"analysis/source/model.py"},
    "tests/unit/analysis/source/test_loops.py": {
        "analysis/source/waits.py",
        "analysis/source/walk.py",
    },
    "tests/unit/analysis/source/test_names.py": {"analysis/source/bindings.py"},
    "tests/unit/analysis/source/test_read.py": {"analysis/source/seen.py"},
    "tests/unit/analysis/source/test_retriers.py": {"analysis/source/attempts.py"},
    "tests/unit/analysis/source/rules/test_layers.py": {"analysis/source/rules/rule.py"},
    "tests/unit/report/test_source_text.py": {"report/source_json.py"},
    "tests/simulation/test_traces_of_a_simulation.py": {"sim/spans.py"},
    "tests/unit/runtime/test_aio_hedged.py": {"runtime/hedged.py"},
    "tests/integration/test_lab_processes.py": {"lab/process.py"},
    "tests/unit/adapters/test_again.py": {"adapters/stamina.py", "adapters/tenacity.py"},
    "tests/integration/test_httpx_adapters.py": {"adapters/httpx2.py", "adapters/transport.py"},
    "tests/integration/test_httpx_pool.py": {"adapters/httpx.py"},
    "tests/integration/test_grpc_adapters.py": {
        "adapters/grpc.py",
        "adapters/grpc_aio.py",
        "adapters/rpc.py",
    },
    "tests/integration/test_aiohttp_adapter.py": {"adapters/aiohttp.py"},
    "tests/integration/test_requests_adapter.py": {"adapters/requests.py"},
    "tests/integration/test_urllib3_adapter.py": {"adapters/urllib3.py"},
    "tests/integration/test_live_storm.py": {"lab/live.py"},
    "tests/unit/spooler/log/test_log.py": {
        "spooler/log/cursor.py",
        "spooler/log/ledger.py",
        "spooler/log/quarantine.py",
        "spooler/log/reader.py",
        "spooler/log/segment.py",
        "spooler/log/usage.py",
        "spooler/log/writer.py",
    },
    "tests/integration/test_spool_door.py": {"spooler/door/server.py"},
    "tests/unit/spooler/door/test_app.py": {
        "spooler/door/answer.py",
        "spooler/door/intake.py",
    },
    "tests/integration/test_nats_sink.py": {"spooler/sinks/nats.py"},
    "tests/integration/test_coordinators.py": {
        "spooler/coordinators/nats.py",
        "spooler/coordinators/postgres.py",
        "spooler/coordinators/valkey.py",
    },
    "tests/integration/test_kafka_sink.py": {"spooler/sinks/kafka.py"},
}
NOTHING_TO_TEST = {
    "_version.py": "one constant, which the build reads too",
    "core/circuit.py": "words without a rule of their own",
    "core/lane.py": "words without a rule of their own",
    "findings.py": "records without a rule of their own",
    "analysis/source/findings.py": "records without a rule of their own",
    "lab/findings.py": "records without a rule of their own",
    "spooler/coordinators/coordinator.py": "a protocol and its records",
    "spooler/door/keeper.py": "a protocol and its records",
    "spooler/coordinators/store.py": "a protocol and its record",
    "spooler/sinks/sink.py": "a protocol and its records",
    "spooler/status.py": "records without a rule of their own",
}

# Put together here, so that this file does not hold what it looks for.
UNFINISHED = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)))
ELSEWHERE = re.compile(
    "|".join(
        (
            r"(?<![\w.~}])/(?:wo" + r"rk|roo" + r"t|ho" + r"me|Us" + r"ers)/",
            r"\.\./sha" + "red",
            r"py" + r"pi\.org",
            "python" + "hosted",
            r"npm" + r"js",
            r"deb\.deb" + "ian",
            r"maven\.(?:org|apache)",
            r"(?:proxy\.golang|crates)\.(?:org|io)",
        )
    )
)


class Source(NamedTuple):
    """A file and what it holds, so that a test can plant one without a disk."""

    name: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.text)


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def texts() -> Iterator[Source]:
    """Every text file that belongs to the project; caches and environments do not."""
    files = [file for file in ROOT.iterdir() if file.is_file()]
    for tree in TREES:
        files += (ROOT / tree).rglob("*")
    for file in sorted(files):
        if file.is_file() and "__pycache__" not in file.parts:
            try:
                yield Source(file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))
            except UnicodeDecodeError:
                continue  # a picture or a database


TEXTS = list(texts())
MODULES = [source for source in TEXTS if source.name.endswith(".py")]
PACKAGE = [source for source in MODULES if source.name.startswith("src/")]


def long_functions(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{source.name}: {node.name} has {lines} lines"


def long_lines(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > LINE_LENGTH_MAX:
            yield f"{source.name}:{number}: {len(line)} columns"


def without_opening(source: Source) -> Iterator[str]:
    """A module opens with at least one sentence: the question it answers."""
    first = (ast.get_docstring(source.tree) or "").partition("\n\n")[0].strip()
    is_sentence = len(first.split()) >= 3 and first[-1] in ".?!:"
    if not is_sentence and source.text.strip():
        yield f"{source.name}: opens with {first!r}"


def unfinished(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield f"{source.name}:{number}: {line.strip()}"


def from_elsewhere(source: Source) -> Iterator[str]:
    """Paths of one machine and addresses of registries: a clone has neither."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if ELSEWHERE.search(line):
            yield f"{source.name}:{number}: {line.strip()}"


def public_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_") or name == "__all__"}


def without_all(source: Source) -> Iterator[str]:
    """A public module says which of its names are for others."""
    names = public_names(source.tree)
    if names and "__all__" not in names and not Path(source.name).name.startswith("_"):
        yield f"{source.name}: has no __all__"


def printing(source: Source) -> Iterator[str]:
    """Only a command prints."""
    if source.name.startswith("src/tidegate/cli/"):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            prints = ast.unparse(node.func) == "print"
        elif isinstance(node, ast.Attribute):
            prints = ast.unparse(node) in {"sys.stdout", "sys.stderr"}
        else:
            continue
        if prints:
            yield f"{source.name}:{node.lineno}: prints"


RULES = [
    (long_functions, MODULES),
    (long_lines, MODULES),
    (without_opening, MODULES),
    (unfinished, TEXTS),
    (from_elsewhere, TEXTS),
    (without_all, PACKAGE),
    (printing, PACKAGE),
]
FAULTS = [
    (long_functions, "def f():\n" + "    pass\n" * FUNCTION_LINES_MAX),
    (long_lines, f"# {'=' * LINE_LENGTH_MAX}"),
    (without_opening, "x = 1"),
    (without_opening, '"""Settings."""'),
    (unfinished, "# TO" + "DO: later"),
    (from_elsewhere, "see /wo" + "rk/main"),
    (from_elsewhere, "--index-url https://py" + "pi.org/simple"),
    (without_all, "def f(): ..."),
    (printing, "print(1)"),
    (printing, "import sys\nsys.stderr.write('')"),
]


@pytest.mark.parametrize(("rule", "sources"), RULES)
def test_the_tree_is_tidy(rule: Callable[[Source], Iterator[str]], sources: list[Source]) -> None:
    faults = [fault for source in sources for fault in rule(source)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("rule", "fault"), FAULTS)
def test_a_planted_fault_is_seen(rule: Callable[[Source], Iterator[str]], fault: str) -> None:
    assert list(rule(Source("src/tidegate/planted.py", fault)))


def test_every_module_has_its_unit_test_or_a_reason() -> None:
    modules = {
        file.relative_to(SRC).as_posix(): file.relative_to(SRC).with_name(f"test_{file.name}")
        for file in SRC.rglob("*.py")
        if file.name != "__init__.py"
    }
    alone = {name for name, test in modules.items() if (ROOT / "tests/unit" / test).exists()}
    together = {name for names in TESTED_TOGETHER.values() for name in names}
    assert all((ROOT / test).exists() for test in TESTED_TOGETHER)
    assert modules.keys() - alone == together | NOTHING_TO_TEST.keys()


def test_importing_loads_the_standard_library_and_msgspec_alone() -> None:
    script = (
        # msgspec first: it takes typing_extensions along where somebody has installed them.
        "import json, sys, msgspec; before = set(sys.modules); import tidegate;"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(run.stdout)}
    assert "tidegate" in loaded
    assert loaded <= {"tidegate", "msgspec"} | sys.stdlib_module_names
    assert "asyncio" not in loaded
