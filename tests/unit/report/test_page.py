"""The frame of every page: it needs nothing else, and its policy lets nothing else in."""

import base64
import hashlib
import re

from tidegate.report.markup import el
from tidegate.report.page import document


def test_a_title_is_text_and_the_body_stands_in_its_order() -> None:
    text = document("a <b> & c", el("p", "one"), None, el("p", "two"))
    assert "<title>a &lt;b&gt; &amp; c</title>" in text
    assert text.endswith("<body><p>one</p><p>two</p></body></html>\n")


def test_its_policy_allows_its_own_style_by_its_hash_and_nothing_else() -> None:
    text = document("page")
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[0]
    assert policy.replace("&#x27;", "'").startswith(
        f"default-src 'none'; style-src 'sha256-{digest}'"
    )
    assert "src=" not in text
    assert "url(" not in style
