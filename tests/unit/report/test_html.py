"""The page stands alone, reads well to everybody, and lets no name act."""

import base64
import hashlib
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_reports import HOSTILE, SAMPLES, cures, empty, marketplace, mixed, stable

from tidegate.report import html, markup
from tidegate.report.figures import clean

VOID = {"meta", "br", "hr", "link"}
STYLE = Path(html.__file__).with_name("page.css").read_text("utf-8")


class Page(HTMLParser):
    """What a browser would make of it; complains about anything that is not well nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@cache
def page(name: str) -> Page:
    return Page(html.render(SAMPLES[name]()))


# Parsing a page of a megabyte in Python takes a second.
EVERY = [pytest.param(n, marks=pytest.mark.slow if n == "big" else ()) for n in SAMPLES]


@pytest.mark.parametrize("name", EVERY)
def test_it_is_well_formed_and_needs_nothing_else(name: str) -> None:
    seen = page(name)
    text = html.render(SAMPLES[name]())
    assert text.startswith('<!DOCTYPE html>\n<html lang="en"><head>')
    assert {"script", "link", "img", "iframe", "object", "base", "form"}.isdisjoint(
        tag for tag, _ in seen.tags
    )
    for _, attributes in seen.tags:
        assert not {a for a in attributes if a.startswith("on") or a in {"src", "style"}}
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in STYLE
    assert "@import" not in STYLE


def test_its_policy_forbids_all_but_its_own_style() -> None:
    policy = next(
        meta["content"]
        for meta in page("marketplace").all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert f"<style>{STYLE}</style>" in html.render(marketplace())


def test_names_that_want_to_be_code_are_text() -> None:
    seen = page("hostile")
    assert "script" not in {tag for tag, _ in seen.tags}
    assert seen.text.count(clean(HOSTILE)) > 50
    assert "\x1b" not in seen.text
    assert "\u202e" not in seen.text


def test_the_style_sheet_cannot_end_its_element() -> None:
    assert "</" not in STYLE
    assert markup.join(["</style>"]) == "&lt;/style&gt;"


@pytest.mark.parametrize("name", EVERY)
def test_ids_are_unique_and_references_lead_to_them(name: str) -> None:
    seen = page(name)
    ids = [a["id"] for _, a in seen.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in seen.tags:
        for reference in (attributes.get("aria-labelledby") or "").split():
            assert reference in ids
        if (attributes.get("href") or "").startswith("#"):
            assert str(attributes["href"])[1:] in ids


@pytest.mark.parametrize("name", EVERY)
def test_headings_go_down_one_step_at_a_time(name: str) -> None:
    levels = [int(tag[1]) for tag, _ in page(name).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_it_names_its_language_and_its_title() -> None:
    assert page("marketplace").all("html") == [{"lang": "en"}]
    assert "<title>fails: marketplace.yaml (tidegate check)</title>" in html.render(marketplace())


def test_every_chart_has_its_table_one_click_away() -> None:
    seen = page("marketplace")
    assert len(seen.all("figure")) == 3  # the curve of the binding service, two triggers
    assert len(seen.all("details")) == len(seen.all("summary")) == 3
    regions = [d for d in seen.all("div") if d.get("class") == "scroll"]
    assert [r["tabindex"] for r in regions] == ["0"] * 3
    assert all(r["role"] == "region" and r["aria-label"] for r in regions)


def test_cells_of_a_stacked_table_carry_their_heads() -> None:
    cells = [td for td in page("stable").all("td") if td.get("role") == "cell"]
    assert cells
    assert all(td.get("data-head") for td in cells)


@pytest.mark.parametrize(
    "told",
    [
        "10min of a marketplace that is 4x slower",
        "581k (574k..589k) requests fail in migration, 174k (171k..178k) without retries",
        "One action of readers can make 6 attempts (computed) .",
        "edge calls market (3 attempts) marketplace 6 per user action",
        "marketplace 750/s 37.5% 2,000/s 556/s 6 2.25x vulnerable",
        "Below 556/s it comes back by itself after any trigger.",
        "readers 99.8% (99.8..99.9%) 6% (5..8%) 3% (2..4%) 12% (10..14%)",
        "tracker workers wait for licence checks, so pages without one wait too.",
        "roll back + open licences recovers in 41s (36s..55s) 99.7% (99.5..99.9%)",
        "58% (56..60%), simulated, 20 runs",
        "backoff 100ms on market 1 of 2 13% (11..15%), simulated, 20 runs not up to 300ms",
        "if licences may fail, no page needs marketplace",
        "3 attempts here times 2 at tracker make 6 for one page.",
        "services: {edge: {calls: {market: {backoff: 100ms}}}}",
        "clients.shoppers.rate from 400/s to 800/s decides 71%.",
        "tidegate check marketplace.yaml --seed 1 --runs 20",
    ],
)
def test_the_marketplace_is_told_in_full(told: str) -> None:
    assert told in page("marketplace").text


def test_every_kind_of_outcome_is_told() -> None:
    text = page("mixed").text
    for told in (
        *("interrupted It was interrupted", "slow to drain backlog", "oscillates health checks"),
        *("unharmed small dip (assumed)", "Where the models disagree", "Skipped"),
        "all from retries : 581k requests (574k..589k) fail while it lasts, 0 requests (0..0)",
    ):
        assert told in text


def test_empty_lists_leave_no_empty_sections() -> None:
    seen = page("empty")
    assert "None was tried." in seen.text
    assert {"table", "figure", "article"}.isdisjoint(tag for tag, _ in seen.tags)
    assert [s["id"] for s in seen.all("section")] == ["why", "triggers", "made"]


def test_parts_that_may_be_absent_may_be_absent() -> None:
    bare = replace(mixed().triggers[0], clients=[], falls=[], timeline=None, fluid=None, actions=[])
    text = Page(html.render(replace(stable(), triggers=[bare]))).text
    assert "the fluid model says" not in text
    assert "Requests answered in time" not in text
    unconfirmed = replace(cures()[0], confirmed=False)
    text = Page(html.render(replace(empty(), cures=[unconfirmed]))).text
    assert "Not confirmed by further runs." in text


THEMES = {
    "light": STYLE[: STYLE.index("@media")],
    "dark": STYLE[STYLE.index("@media (prefers-color-scheme: dark)") : STYLE.index("* {")],
    "print": STYLE[STYLE.index("@media print") :],
}
TEXTS = ("text", "muted", "link", "bad", "wary", "good")
CURVES = ("blue", "orange", "grey", "text")


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_measured_right() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
def test_all_text_has_a_contrast_of_four_and_a_half(theme: str) -> None:
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", THEMES[theme]))
    for ground in ("ground", "raised"):
        for name in TEXTS:
            assert contrast(colours[name], colours[ground]) >= 4.5, (theme, name, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_curves_stand_out_from_every_ground_they_cross(theme: str) -> None:
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", THEMES[theme]))
    for ground in ("ground", "raised", "window"):
        for name in CURVES:
            assert contrast(colours[name], colours[ground]) >= 3, (theme, name, ground)
