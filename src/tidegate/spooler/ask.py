"""How does the command line talk to a spool that runs?

Over its own door, with its own token, and only to the address in the file.
"""

import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import msgspec

from tidegate.errors import InputError
from tidegate.settings.spool import Spool
from tidegate.spooler.status import SpoolStatus

__all__ = ["command", "status"]

_PATIENCE_S = 5.0
_ANSWER_MAX = 4 * 1024 * 1024


def status(spool: Spool, base: Path) -> SpoolStatus:
    """What the running spool says of itself; InputError if nobody answers."""
    try:
        return msgspec.json.decode(_ask(spool, base, "GET", "/status"), type=SpoolStatus)
    except msgspec.MsgspecError as error:
        raise InputError(f"{spool.listen} is no spool of this version: {error}") from None


def command(spool: Spool, base: Path, verb: str, lane: str, **query: str) -> None:
    """Hold or release a lane; InputError if nobody answers or it is refused."""
    path = f"/{verb}/{urllib.parse.quote(lane, safe='')}"
    _ask(spool, base, "POST", f"{path}?{urllib.parse.urlencode(query)}" if query else path)


def _ask(spool: Spool, base: Path, method: str, path: str) -> bytes:
    request = urllib.request.Request(f"http://{spool.listen}{path}", method=method)
    if spool.door.token_file is not None:
        request.add_header("Authorization", f"Bearer {_token(base / spool.door.token_file)}")
    # No proxy of the environment stands between a person and their own machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_PATIENCE_S) as response:
            answer: bytes = response.read(_ANSWER_MAX)
            return answer
    except urllib.error.HTTPError as error:
        said = error.read(1000).decode("utf-8", "replace").strip()
        raise InputError(f"the spool at {spool.listen} answered {error.code}: {said}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        text = getattr(reason, "strerror", None) or str(reason)
        raise InputError(
            f"nobody answers at {spool.listen} ({text}); is `tidegate spool run` running?"
        ) from None


def _token(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no ASCII text"
        raise InputError(f"cannot read {path}: {reason}") from None
