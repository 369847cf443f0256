"""`from tidegate.adapters import httpx` without httpx said neither what to install nor for whom."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidegate
from tidegate.errors import missing_extra

EXTRAS = {
    "tidegate.adapters.httpx2": "httpx2",
    "tidegate.adapters.httpx": "httpx",
    "tidegate.adapters.aiohttp": "aiohttp",
    "tidegate.adapters.requests": "requests",
    "tidegate.adapters.urllib3": "urllib3",
    "tidegate.adapters.grpc": "grpc",
    "tidegate.adapters.grpc_aio": "grpc",
    "tidegate.adapters.tenacity": "tenacity",
    "tidegate.runtime.prometheus": "prometheus",
    "tidegate.runtime.opentelemetry": "opentelemetry",
}

# Without `site` an interpreter has nothing that is installed; msgspec is what tidegate cannot lack.
BARE = """
import importlib, sys
for name in {names!r}.split():
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error, sep="|")
"""


def test_each_says_what_to_install(tmp_path: Path) -> None:
    import msgspec

    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    source = Path(tidegate.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-c", BARE.format(names=" ".join(EXTRAS))],
        env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = dict(line.split("|") for line in done.stdout.splitlines())
    assert said.keys() == EXTRAS.keys()
    for module, extra in EXTRAS.items():
        assert f"pip install 'tidegate[{extra}]'" in said[module]


def test_who_asks_for_import_errors_still_finds_them() -> None:
    with pytest.raises(ImportError, match="httpx2") as caught:
        raise missing_extra(ModuleNotFoundError("no", name="httpx2"), "httpx2")
    assert caught.value.name == "httpx2"
