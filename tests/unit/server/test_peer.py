"""Whom to believe: named addresses and networks, and nobody who merely looks like one."""

import pytest

from tidegate.errors import SettingsError
from tidegate.server.peer import bounded, trusts


@pytest.mark.parametrize(
    ("trusted", "address", "believed"),
    [
        (["10.0.0.0/8"], "10.1.2.3", True),
        (["10.0.0.0/8"], "11.1.2.3", False),
        (["10.0.0.0/8"], "::ffff:10.1.2.3", True),
        (["fe80::/10"], "fe80::1%eth0", True),
        (["::1"], "::1", True),
        ("127.0.0.1", "127.0.0.1", True),  # one address needs no list
        (["127.0.0.1"], "localhost", False),
        (["127.0.0.1"], None, False),
        (["127.0.0.1"], "", False),
        (["127.0.0.1", "*"], None, True),
        ("*", "anything", True),
    ],
)
def test_who_is_believed(trusted: list[str] | str, address: str | None, believed: bool) -> None:
    assert trusts(trusted)(address) is believed


@pytest.mark.parametrize("wrong", ["10.0.0.1/8", "my-gateway", "10.0.0.0/33", ""])
def test_what_is_no_network_is_refused(wrong: str) -> None:
    with pytest.raises(SettingsError, match="trusted"):
        trusts([wrong])


def test_a_name_is_never_longer_than_it_may_be() -> None:
    assert bounded("a" * 64) == "a" * 64
    assert len(bounded("a" * 65)) == 32
    assert bounded("a" * 65) != bounded("a" * 66)
    assert len(bounded("\udc80" * 65)) == 32  # bytes that are no text
