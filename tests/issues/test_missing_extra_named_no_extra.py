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


def test_a_shared_rate_says_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.server.shared_rate import SharedRate

    monkeypatch.setitem(sys.modules, "limits", None)
    said = r"a shared rate needs the package of limits: pip install 'tidegate\[valkey\]'"
    with pytest.raises(ModuleNotFoundError, match=said):
        SharedRate(10, "valkey://127.0.0.1:1")


def test_the_lab_says_it_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tidegate.cli.main import main

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for module in [name for name in sys.modules if name.startswith("tidegate.lab")]:
        monkeypatch.delitem(sys.modules, module)
    assert main(["lab", "storm"]) == 2
    said = "the lab needs the package of uvicorn: pip install 'tidegate[lab]'"
    assert said in capsys.readouterr().err
