"""What is a page that can be handed on, opened years later, and trusted with untrusted names?

One file that needs nothing else: no network, no script, no font. Its content security policy
forbids all of them and allows the one style sheet by its hash, so that a name out of an untrusted
file could not act even if it were let through. It follows the reader's light or dark, stacks its
tables on a narrow window, and prints.
"""

import base64
import hashlib
from importlib import resources

from tidegate.report.markup import Markup, el

__all__ = ["document"]


def document(title: str, *body: Markup | None) -> str:
    """The whole page, ended by a newline."""
    style = resources.files("tidegate.report").joinpath("page.css").read_text(encoding="utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        el("style", Markup(style)),
    )
    return f"<!DOCTYPE html>\n{el('html', head, el('body', *body), lang='en')}\n"


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
