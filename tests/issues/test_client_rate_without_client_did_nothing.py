"""`LoadShedder(app, client_rate=5)` held nobody to a rate; `client="x-api-key"` failed later."""

from typing import Any

import pytest

from tidegate.errors import SettingsError
from tidegate.server import asgi, wsgi


def app(*_: Any) -> Any:
    raise AssertionError("no request is made here")


BOTH = pytest.mark.parametrize("shedder", [asgi.LoadShedder, wsgi.LoadShedder])


@BOTH
@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"client_rate": 5}, "client_rate: .* say whose a request is"),
        ({"client": "x-api-key"}, "client: expected a function, as by_header"),
        (
            {"client": lambda _: 1, "client_rate": "5/s"},
            "client_rate: expected requests a second",
        ),
        ({"client": lambda _: 1, "client_rate": True}, "client_rate: expected requests a second"),
    ],
)
def test_it_is_said_at_once(shedder: Any, keywords: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        shedder(app, **keywords)


@BOTH
def test_what_is_no_application_is_said_at_once(shedder: Any) -> None:
    with pytest.raises(SettingsError, match="app: expected an application"):
        shedder(None)


def test_one_method_is_not_taken_for_its_letters() -> None:
    assert asgi.LoadShedder(app, cancel_on_disconnect="GET")._stoppable == {"GET"}
