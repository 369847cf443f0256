"""After an import of `tidegate.load.client`, as the lab does it, `tidegate.load(file)` failed.

TypeError: 'module' object is not callable. A package takes its place in the one above it when it is
first imported, whatever stands there.
"""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["tidegate.load.client", "tidegate.lab.storm"])
def test_load_stays_a_function(module: str) -> None:
    script = (
        f"import tidegate, {module};"
        "from tidegate.load import client, plan;"
        "assert callable(tidegate.load), tidegate.load;"
        "assert client.__name__ == 'tidegate.load.client'"
    )
    run = subprocess.run(  # a process of its own: in this one it has been imported already
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
