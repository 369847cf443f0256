"""A SettingsError raised in a worker process could not be unpickled by its parent."""

import pickle

from tidegate.errors import SettingsError


def test_it_arrives_whole() -> None:
    sent = SettingsError("no", path=("a", "b"), where="f.yaml:1:2", expected="yes")
    got = pickle.loads(pickle.dumps(sent))
    assert (str(got), got.path, got.where, got.expected) == (
        "f.yaml:1:2: a.b: no",
        ("a", "b"),
        "f.yaml:1:2",
        "yes",
    )
