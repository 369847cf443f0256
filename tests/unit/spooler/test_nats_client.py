"""An address of NATS servers taken apart, and names made fit for subjects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import SettingsError

pytest.importorskip("nats")

from tidegate.spooler.nats_client import Address, read_address, token


def test_an_address_is_servers_a_path_and_options() -> None:
    assert read_address("nats://a:1,b,[::1]:3/ev%20ents.x?creds=c&n=3", ("creds", "n")) == Address(
        ("a:1", "b:4222", "[::1]:3"), "ev ents.x", {"creds": "c", "n": "3"}
    )


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nats:a", "expected nats://HOST:PORT"),
        ("http://a", "expected nats://HOST:PORT"),
        ("nats://[::1", "expected nats://HOST:PORT"),
        ("nats://a:70000", "expected a port"),
        ("nats://a,,b", "between the commas"),
        ("nats://tok3n@a", "name a credentials file"),
        ("nats://a?stram=x", "there is no option 'stram'; did you mean 'stream'?"),
        ("nats://" + ",".join(["a"] * 65), "at most 64 servers"),
    ],
)
def test_a_wrong_one_is_refused_in_a_sentence(url: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_address(url, ("stream",))
    assert says in str(refused.value)
    assert "tok3n" not in str(refused.value)


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_a_name_becomes_one_token_and_different_names_different_tokens(names: list[str]) -> None:
    one, other = (token(name) for name in names)
    assert one != other
    assert not set(one) - set("=-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
