"""Each adapter needs its own client and no other, so that an extra is all that one installs."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "src/tidegate/adapters"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
# What a client brings along counts as its own.
ALONG = {"requests": {"urllib3"}}
NEEDS = {
    "aiohttp": "aiohttp",
    "grpc": "grpc",
    "grpc_aio": "grpc",
    "httpx": "httpx",
    "httpx2": "httpx2",
    "requests": "requests",
    "rpc": "grpc",
    "stamina": "stamina",
    "tenacity": "tenacity",
    "urllib3": "urllib3",
}
CLIENTS = set(NEEDS.values())


def imported(source: str) -> set[str]:
    """The clients that a module imports, itself or by another adapter."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    ours = {name.split(".")[2] for name in found if name.startswith("tidegate.adapters.")}
    theirs = {name.partition(".")[0] for name in found} & CLIENTS
    return theirs | {NEEDS[name] for name in ours if name in NEEDS}


@pytest.mark.parametrize("module", sorted(ADAPTERS.glob("*.py")), ids=lambda file: file.stem)
def test_an_adapter_needs_its_own_client_alone(module: Path) -> None:
    need = NEEDS.get(module.stem)
    allowed = set() if need is None else {need} | ALONG.get(need, set())
    assert imported(module.read_text("utf-8")) <= allowed


def test_another_client_is_seen() -> None:
    assert imported("import httpx\nfrom tidegate.adapters.rpc import Calls\n") == {"httpx", "grpc"}
    assert imported("from tidegate.adapters import grpc as blocking\n") == {"grpc"}


@pytest.mark.parametrize("client", sorted(set(NEEDS.values())))
def test_each_has_an_extra_and_all_of_them_have_one(client: str) -> None:
    assert len(EXTRAS[client]) == 1
    assert client in EXTRAS["adapters"][0]
