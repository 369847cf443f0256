"""After an import of the lab, `tidegate.load(file)` failed: 'module' object is not callable.

A package takes its place in the one above it when it is first imported, whatever stands there; so
nothing below `tidegate` may have the name of something public in it.
"""

from pathlib import Path

import tidegate


def test_no_module_has_the_name_of_something_public() -> None:
    modules = {path.stem for path in Path(tidegate.__file__).parent.iterdir()}
    assert "loadgen" in modules
    assert not modules & set(tidegate.__all__)
