"""Which objects speak to a far side, which of them repeat by themselves, and how often?

A client's own retries are a layer like any other; people forget them because they are a default.
The counts were read in the libraries' sources: openai 3.57 and anthropic 2.14 repeat twice after
the first attempt, botocore 1.44 makes three attempts in its standard mode (five in the legacy one),
aiohttp-retry 2.9 three, httpx-retries 0.6 eleven, urllib3 2.8 `Retry()` eleven and a `PoolManager`
without one four.
"""

import ast
from typing import Final, NamedTuple

from tidegate.analysis.source.attempts import bounded
from tidegate.analysis.source.literals import ABSENT, UNKNOWN, argument, opaque, value, value_of
from tidegate.analysis.source.model import UNLIMITED, Layer, Wait
from tidegate.analysis.source.names import Scope, dotted, follow, members

__all__ = ["SDKS", "Remote", "adapter", "client", "owner", "remote", "transport"]

_VERBS: Final = frozenset(
    ["get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "send"]
)
_SDK_NAMES: Final = {
    "openai": "OpenAI AsyncOpenAI AzureOpenAI AsyncAzureOpenAI Client AsyncClient",
    "anthropic": "Anthropic AsyncAnthropic AnthropicBedrock AsyncAnthropicBedrock AnthropicVertex"
    " AsyncAnthropicVertex Client AsyncClient",
}
SDKS: Final = frozenset(
    f"{library}.{name}" for library, names in _SDK_NAMES.items() for name in names.split()
)
"""Constructors of clients that repeat twice and wait up to 600 s, unless told otherwise."""

_AWS: Final = frozenset(
    [
        "boto3.client",
        "boto3.resource",
        "boto3.Session().client",
        "boto3.Session().resource",
        "boto3.session.Session().client",
        "boto3.session.Session().resource",
        "botocore.session.get_session().create_client",
        "botocore.session.Session().create_client",
    ]
)
_HTTP: Final = {
    "requests.Session": "requests",
    "httpx.Client": "httpx",
    "httpx.AsyncClient": "httpx",
    "httpx2.Client": "httpx2",
    "httpx2.AsyncClient": "httpx2",
    "aiohttp.ClientSession": "aiohttp",
    "aiohttp_retry.RetryClient": "aiohttp",
    "urllib3.PoolManager": "urllib3",
    "urllib3.ProxyManager": "urllib3",
}
_HTTPX: Final = frozenset(name for name, library in _HTTP.items() if library.startswith("httpx"))
_ANY_VERB: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")
_AIOHTTP_RETRY: Final = {
    "aiohttp_retry.ExponentialRetry": (Wait.FIXED, "no jitter", 4, 6),
    "aiohttp_retry.RetryOptions": (Wait.FIXED, "no jitter", 4, 6),
    "aiohttp_retry.ListRetry": (Wait.FIXED, "a fixed list", 1, 3),
    "aiohttp_retry.FibonacciRetry": (Wait.FIXED, "no jitter", 3, 5),
    "aiohttp_retry.RandomRetry": (Wait.JITTER, "", 3, 5),
    "aiohttp_retry.JitterRetry": (Wait.JITTER, "", 4, 6),
}


class Remote(NamedTuple):
    """A call that goes to a far side: the family of its errors, and the verb if it is HTTP."""

    family: str
    verb: str = ""


def remote(target: str) -> Remote | None:
    """What a called name sends, if it is known to send anything."""
    if target.startswith("urllib.request.urlopen"):
        return Remote("os")
    library, _, rest = target.partition(".")
    if library in ("requests", "httpx", "httpx2", "aiohttp") and rest in _VERBS:
        return Remote(library, rest.upper())
    made, mark, method = target.rpartition("().")
    if not mark:
        return None
    if made in _HTTP:
        return Remote(_HTTP[made], method.upper()) if method in _VERBS else None
    if made in SDKS:
        return Remote(library) if "." in method else None
    if made in _AWS:
        return Remote("aws")
    return None


def owner(node: ast.expr, scope: Scope) -> tuple[ast.Call, Scope, str] | None:
    """The call that made the object on which a method is called, and the maker's name."""
    for _ in range(6):
        if not isinstance(node, ast.Attribute):
            return None
        node = node.value
        found, where = follow(node, scope)
        if isinstance(found, ast.Call):
            name = dotted(found.func, where)
            if name is None:
                return None
            name = name.removesuffix("()")
            return found, where, name
    return None


def client(call: ast.Call, scope: Scope, name: str) -> Layer | None:
    """The retries that a client makes by itself; None if it makes none, or none are shown."""
    if name in SDKS:
        return _sdk(call, scope, name)
    if name in _AWS:
        return _aws(call, scope)
    if name in _HTTPX:
        return _httpx(call, scope)
    if name == "aiohttp_retry.RetryClient":
        options = argument(call, "retry_options")
        if options is None:
            return None if opaque(call) else _client(call, "aiohttp-retry", 3, "3", Wait.FIXED)
        return transport(*follow(options, scope))
    if name in ("urllib3.PoolManager", "urllib3.ProxyManager"):
        retries = argument(call, "retries")
        if retries is None:
            return None if opaque(call) else _client(call, "urllib3", 4, "4", Wait.NONE)
        return _retries(retries, scope)
    return None


def adapter(node: ast.expr, scope: Scope) -> Layer | None:
    """The retries of what is mounted on a `requests.Session`."""
    found, where = follow(node, scope)
    if isinstance(found, ast.Call) and dotted(found.func, where) == "requests.HTTPAdapter":
        retries = argument(found, "max_retries", at=2)
        return _retries(retries, where) if retries is not None else None
    return None


def _retries(node: ast.expr, scope: Scope) -> Layer | None:
    """`Retry(...)`, or a bare number, which urllib3 turns into `Retry(number)`."""
    found, where = follow(node, scope)
    made = transport(found, where)
    if made is not None:
        return made
    number = value(found, where)
    if isinstance(number, int) and not isinstance(number, bool) and number > 0:
        return _client(node, "urllib3", number + 1, str(number + 1), Wait.NONE)
    return None


def transport(node: ast.expr, scope: Scope) -> Layer | None:
    """The layer that a settings object of an HTTP library's retries stands for."""
    if not isinstance(node, ast.Call):
        return None
    name = dotted(node.func, scope)
    if name == "urllib3.Retry":
        return _urllib3(node, scope)
    if name == "requests.HTTPAdapter":
        retries = argument(node, "max_retries", at=2)
        number = value(retries, scope) if retries is not None else None
        return _retries(retries, scope) if retries is not None and isinstance(number, int) else None
    if name in ("httpx_retries.Retry", "httpx_retries.retry.Retry"):
        return _httpx_retries(node, scope)
    if name in _AIOHTTP_RETRY:
        return _aiohttp_retry(node, scope, name)
    return None


def _client(
    node: ast.expr,
    library: str,
    attempts: float | None,
    bound: str,
    wait: Wait,
    *,
    raises: str | None = None,
    methods: tuple[str, ...] | None = None,
    statuses: tuple[int, ...] = (),
    hears: bool | None = None,
    wait_said: str = "",
) -> Layer:
    return Layer(
        library=library,
        line=node.lineno,
        column=node.col_offset,
        end_line=node.end_lineno or node.lineno,
        attempts=attempts,
        bound=bound,
        wait=wait,
        wait_said=wait_said,
        raises=raises,
        methods=methods,
        statuses=statuses,
        hears=hears,
        kind="client",
    )


def _sdk(call: ast.Call, scope: Scope, name: str) -> Layer | None:
    number = value_of(call, scope, "max_retries")
    if number is UNKNOWN and argument(call, "max_retries") is None:
        return None
    if number is ABSENT:
        attempts: float | None = 3.0
        bound = "3"
    else:
        tries = number + 1 if isinstance(number, int) else UNKNOWN
        attempts, bound = bounded(tries, argument(call, "max_retries"))
    if attempts == 1:
        return None
    library = name.partition(".")[0]
    return _client(call, name, attempts, bound, Wait.JITTER, raises=f"{library}.?", hears=True)


def _aws(call: ast.Call, scope: Scope) -> Layer | None:
    config = argument(call, "config")
    attempts: float | None = 3.0
    bound = "3"
    if config is not None or opaque(call):
        if config is None:
            return None
        found, where = follow(config, scope)
        if not isinstance(found, ast.Call) or dotted(found.func, where) != "botocore.config.Config":
            return None
        retries = argument(found, "retries")
        if retries is None and opaque(found):
            return None
        if retries is not None:
            attempts, bound = _aws_attempts(*follow(retries, where))
            if attempts == 1:
                return None
    return _client(call, "botocore", attempts, bound, Wait.JITTER, raises="botocore.?")


def _aws_attempts(node: ast.expr, scope: Scope) -> tuple[float | None, str]:
    if not isinstance(node, ast.Dict):
        return None, "a number not shown"
    for key, given in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in ("max_attempts", "total_max_attempts"):
            number = value(given, scope)
            more = 1 if key.value == "max_attempts" else 0
            return bounded(number + more if isinstance(number, int) else UNKNOWN, given)
    return 3.0, "3"


def _httpx(call: ast.Call, scope: Scope) -> Layer | None:
    given = argument(call, "transport")
    if given is None:
        return None
    found, where = follow(given, scope)
    if not isinstance(found, ast.Call):
        return None
    name = dotted(found.func, where) or ""
    if name.endswith(".RetryTransport") and name.startswith("httpx_retries"):
        retry = argument(found, "retry", at=1)
        if retry is None:
            return None if opaque(found) else _client(found, "httpx-retries", 11, "11", Wait.NONE)
        return transport(*follow(retry, where))
    return None


def _urllib3(call: ast.Call, scope: Scope) -> Layer | None:
    total = value_of(call, scope, "total", at=0)
    hidden = opaque(call)
    others = [value_of(call, scope, name) for name in ("connect", "read", "status")]
    if total in (False, 0):
        return None
    attempts: float | None
    if total is ABSENT:
        attempts, bound = (None, "arguments not shown") if hidden else (11.0, "11")
    elif total is None:
        open_ended = all(other in (ABSENT, None) for other in others) and not hidden
        attempts, bound = (UNLIMITED, "unlimited") if open_ended else (None, "a number not shown")
    else:
        tries = total + 1 if isinstance(total, int) else UNKNOWN
        attempts, bound = bounded(tries, argument(call, "total", at=0))
    factor = value_of(call, scope, "backoff_factor")
    jitter = value_of(call, scope, "backoff_jitter")
    wait = Wait.UNKNOWN
    if not hidden and factor in (ABSENT, 0):
        wait = Wait.NONE if jitter in (ABSENT, 0) else Wait.JITTER
    elif not hidden:
        wait = Wait.FIXED if jitter in (ABSENT, 0) else Wait.JITTER
    hears = value_of(call, scope, "respect_retry_after_header")
    return _client(
        call,
        "urllib3",
        attempts,
        bound,
        wait,
        wait_said="backoff_jitter=0",
        methods=_methods(call, scope, "allowed_methods", "method_whitelist"),
        statuses=_statuses(call, scope, "status_forcelist"),
        hears=True if hears is ABSENT else hears if isinstance(hears, bool) else None,
    )


def _httpx_retries(call: ast.Call, scope: Scope) -> Layer:
    total = value_of(call, scope, "total", at=0)
    hidden = opaque(call)
    attempts: float | None
    if total is ABSENT:
        attempts, bound = (None, "arguments not shown") if hidden else (11.0, "11")
    else:
        tries = total + 1 if isinstance(total, int) else UNKNOWN
        attempts, bound = bounded(tries, argument(call, "total", at=0))
    factor = value_of(call, scope, "backoff_factor")
    jitter = value_of(call, scope, "backoff_jitter")
    wait = Wait.NONE if factor in (ABSENT, 0) else Wait.FIXED if jitter == 0 else Wait.JITTER
    hears = value_of(call, scope, "respect_retry_after_header")
    return _client(
        call,
        "httpx-retries",
        attempts,
        bound,
        Wait.UNKNOWN if hidden else wait,
        wait_said="backoff_jitter=0",
        methods=_methods(call, scope, "allowed_methods"),
        statuses=_statuses(call, scope, "status_forcelist"),
        hears=True if hears is ABSENT else hears if isinstance(hears, bool) else None,
    )


def _aiohttp_retry(call: ast.Call, scope: Scope, name: str) -> Layer:
    wait, wait_said, statuses_at, methods_at = _AIOHTTP_RETRY[name]
    tries = argument(call, "attempts", at=None if name.endswith("ListRetry") else 0)
    attempts: float | None
    attempts, bound = (None, "arguments not shown") if opaque(call) else (3.0, "3")
    if tries is not None:
        attempts, bound = bounded(value(tries, scope), tries)
    elif name.endswith("ListRetry"):
        attempts, bound = None, "the length of a list"
    methods = _methods(call, scope, "methods", at=methods_at)
    decided = argument(call, "evaluate_response_callback") is not None
    return _client(
        call,
        "aiohttp-retry",
        attempts,
        bound,
        wait,
        wait_said=wait_said,
        methods=_ANY_VERB if methods == () and not opaque(call) else methods,
        statuses=_statuses(call, scope, "statuses", at=statuses_at),
        hears=None if decided or opaque(call) else False,
    )


def _methods(
    call: ast.Call, scope: Scope, *names: str, at: int | None = None
) -> tuple[str, ...] | None:
    """The verbs that are repeated: () for the default, None when they are not shown."""
    given = argument(call, *names, at=at)
    if given is None:
        return None if opaque(call) else ()
    if value(given, scope) in (None, False):
        return _ANY_VERB
    found = [value(part, where) for part, where in members(given, scope)]
    if all(isinstance(verb, str) for verb in found):
        return tuple(sorted(verb.upper() for verb in found))
    return None


def _statuses(call: ast.Call, scope: Scope, *names: str, at: int | None = None) -> tuple[int, ...]:
    given = argument(call, *names, at=at)
    if given is None:
        return ()
    found = [value(part, where) for part, where in members(given, scope)]
    return tuple(sorted(status for status in found if isinstance(status, int)))
