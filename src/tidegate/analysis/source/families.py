"""Does a handler or a retry that names these exceptions catch what a far side's failure raises?

Exceptions are sorted into families by the library they come from. A builtin that only bad input or
bad code raises (`ValueError`) is `local`: to repeat on it is to repeat something else than a call
that failed. What is not known is `?` and never taken for more than that.
"""

import ast
import re
from typing import Final

from tidegate.analysis.source.model import EVERYTHING
from tidegate.analysis.source.names import Scope, dotted, members

__all__ = ["connects_only", "families", "is_broad", "is_remote", "meet", "types"]

_LOCAL: Final = frozenset(
    [
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "BlockingIOError",
        "ChildProcessError",
        "EOFError",
        "FileExistsError",
        "FileNotFoundError",
        "GeneratorExit",
        "ImportError",
        "IndexError",
        "IsADirectoryError",
        "KeyError",
        "KeyboardInterrupt",
        "LookupError",
        "ModuleNotFoundError",
        "NameError",
        "NotADirectoryError",
        "NotImplementedError",
        "OverflowError",
        "PermissionError",
        "ProcessLookupError",
        "RecursionError",
        "StopAsyncIteration",
        "StopIteration",
        "SyntaxError",
        "SystemExit",
        "TypeError",
        "UnicodeDecodeError",
        "UnicodeEncodeError",
        "UnicodeError",
        "UnboundLocalError",
        "ValueError",
        "ZeroDivisionError",
        "json.JSONDecodeError",
        "json.decoder.JSONDecodeError",
        "pydantic.ValidationError",
        "queue.Empty",
        "queue.Full",
        "asyncio.QueueEmpty",
        "asyncio.QueueFull",
        "django.db.IntegrityError",
        "django.db.utils.IntegrityError",
        "sqlalchemy.exc.IntegrityError",
        "subprocess.CalledProcessError",
    ]
)
# Words in names of exceptions that speak of this machine, of data, or of others who were first.
_LOCAL_WORDS: Final = re.compile(
    "Conflict|Deadlock|Decode|Duplicate|Exists|Import|Integrity|Json|JSON|Lock|Parse|Process"
    "|Serializ|Stale|Unique|Validat|^Empty$|^Full$"
)
_BROAD: Final = frozenset(("BaseException", EVERYTHING))
_BUILTIN: Final = {
    # the builtins that network code raises, and the libraries whose errors are subclasses of them
    "OSError": ("os", "requests", "aiohttp"),
    "ConnectionError": ("os", "aiohttp"),
    "ConnectionAbortedError": ("os",),
    "ConnectionRefusedError": ("os",),
    "ConnectionResetError": ("os", "aiohttp"),
    "BrokenPipeError": ("os",),
    "TimeoutError": ("os", "aiohttp"),
}
_LIBRARY: Final = {
    "aiohttp": "aiohttp",
    "anthropic": "anthropic",
    "boto3": "aws",
    "botocore": "aws",
    "elasticsearch": "elasticsearch",
    "google": "google",
    "grpc": "grpc",
    "http": "os",
    "httpcore": "httpx",
    "httpx": "httpx",
    "httpx2": "httpx2",
    "litellm": "litellm",
    "openai": "openai",
    "pika": "pika",
    "psycopg": "sql",
    "psycopg2": "sql",
    "pymongo": "pymongo",
    "redis": "redis",
    "requests": "requests",
    "sqlalchemy": "sql",
    "stripe": "stripe",
    "tenacity": "tenacity",
    "urllib": "os",
    "urllib3": "urllib3",
    "valkey": "redis",
    "websockets": "websockets",
}
# Nothing was sent when one of these is raised, so a repeat does nothing twice.
_CONNECT: Final = frozenset(
    [
        "ConnectionRefusedError",
        "aiohttp.ClientConnectorError",
        "httpx.ConnectError",
        "httpx.ConnectTimeout",
        "httpx.PoolTimeout",
        "httpx2.ConnectError",
        "httpx2.ConnectTimeout",
        "httpx2.PoolTimeout",
        "requests.ConnectTimeout",
        "socket.gaierror",
        "urllib3.exceptions.ConnectTimeoutError",
        "urllib3.exceptions.NewConnectionError",
        "openai.RateLimitError",
        "anthropic.RateLimitError",
    ]
)


def types(node: ast.expr | None, scope: Scope) -> tuple[str, ...]:
    """The dotted names of the exceptions in an expression; from `?` on for what is not shown.

    No expression is a bare `except:`.
    """
    if node is None:
        return ("BaseException",)
    return tuple(dotted(part, where) or _last(part) for part, where in members(node, scope))


def _last(node: ast.expr) -> str:
    """What is not shown, with the last part of its name: that alone tells a `Conflict`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return f"?.{name}"
        case _:
            return "?"


def families(names: tuple[str, ...]) -> frozenset[str]:
    """The families of some exceptions; `*` for all of them."""
    found: set[str] = set()
    for name in names:
        if name in _BROAD:
            found.add("*")
        elif name in _LOCAL:
            found.add("local")
        elif name in _BUILTIN:
            found.update(_BUILTIN[name])
        elif _LOCAL_WORDS.search(name.rpartition(".")[2]):
            found.add("local")
        else:
            found.add(_LIBRARY.get(name.partition(".")[0], "?"))
    return frozenset(found)


def is_broad(names: tuple[str, ...]) -> bool:
    """Whether nothing gets past: all exceptions, but for those that end the program."""
    return "*" in families(names)


def is_remote(names: tuple[str, ...]) -> bool:
    """Whether one of them says that a far side failed."""
    return bool(families(names) - {"*", "?", "local"})


def meet(catches: tuple[str, ...], raised: frozenset[str]) -> bool:
    """Whether what is raised is known to be caught; families unknown on both sides do not meet."""
    caught = families(catches)
    if "*" in caught:
        return True
    return bool((caught & raised) - {"?", "local"})


def connects_only(names: tuple[str, ...]) -> bool:
    """Whether all of them say that nothing was done on the far side."""
    return bool(names) and all(name in _CONNECT for name in names)
