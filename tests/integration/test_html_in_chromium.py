"""The page in a real browser: what it shows, how wide it is, where the keyboard goes.

Chromium is driven over its debugging pipe, so that the page is tested as it is written, with its
policy in force. Without a Chromium the tests are skipped, each by its name; `CHROMIUM` names one
that is not on the path.
"""

import json
import os
import selectors
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_reports import SAMPLES
from stormy import report as storm_report

from tidegate.report import html, storm
from tidegate.report.files import write_atomic

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
HANGS = 60  # seconds without an answer: a guard against waiting for ever, not a measure

PAGES = {**dict.fromkeys(SAMPLES, html.render), "storm": storm.render_html}
REPORTS = {**SAMPLES, "storm": storm_report}

pytestmark = [
    pytest.mark.slow,  # a browser is started
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium found (Debian: chromium)"),
]


class Chromium:
    """One headless browser with one tab, spoken to in JSON messages that a zero byte ends."""

    def __init__(self, profile: Path) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        # The browser reads from descriptor 3 and writes to 4, wherever ours happen to be.
        moved = f'exec "$0" "$@" 3</dev/fd/{theirs_in} 4>/dev/fd/{theirs_out}'
        arguments = [*QUIET, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", moved, str(PROGRAM), *arguments, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._from, selectors.EVENT_READ)
        self._read = b""
        self._asked = 0
        self._tab: str | None = None
        self.complaints: list[str] = []

    def start(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._tab = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(HANGS)
        self._ready.close()
        os.close(self._to)
        os.close(self._from)

    def ask(self, method: str, **parameters: Any) -> Any:
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        if self._tab is not None:
            message["sessionId"] = self._tab
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answer = self._until("id", self._asked)
        assert "error" not in answer, answer
        return answer["result"]

    def show(self, page: Path, width: int = 1280, scheme: str = "light") -> None:
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        self.ask("Emulation.setDeviceMetricsOverride", **metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])
        self.complaints.clear()
        self.ask("Page.navigate", url=page.as_uri())
        self._until("method", "Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives; the page itself may run none."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        code = {"Tab": 9, "Enter": 13}[key]
        stroke = {"key": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **stroke)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **stroke)

    def _until(self, key: str, wanted: int | str) -> Any:
        while True:
            message = self._next()
            if message.get("method") == "Log.entryAdded":
                self.complaints.append(message["params"]["entry"]["text"])
            if message.get("method") == "Page.javascriptDialogOpening":
                self.complaints.append("a dialog opened")
            if message.get(key) == wanted:
                return message

    def _next(self) -> Any:
        while b"\0" not in self._read:
            assert self._ready.select(HANGS), "the browser does not answer"
            part = os.read(self._from, 1 << 16)
            assert part, "the browser has gone"
            self._read += part
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    running = Chromium(tmp_path_factory.mktemp("profile"))
    try:
        running.start()
        yield running
    finally:
        running.close()


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Writes the page of one sample and says where it is."""

    def write(name: str) -> Path:
        write_atomic(tmp_path / f"{name}.html", PAGES[name](REPORTS[name]()))
        return tmp_path / f"{name}.html"

    return write


TEXT_OF = "document.querySelector({!r}).innerText"


def test_its_first_number_is_read_from_the_page(browser: Chromium, written: Any) -> None:
    browser.show(written("marketplace"))
    assert browser.value("document.title") == "fails: marketplace.yaml (tidegate check)"
    assert browser.value(TEXT_OF.format(".cards .big")) == "3.33x"
    assert browser.value(TEXT_OF.format("#trigger-1 tbody td")) == "99.8% (99.8..99.9%)"


@pytest.mark.parametrize("name", PAGES)
def test_the_browser_has_nothing_to_complain_of(browser: Chromium, written: Any, name: str) -> None:
    browser.show(written(name))
    assert browser.value("document.scripts.length") == 0
    assert browser.value("performance.getEntriesByType('resource').length") == 0
    assert browser.complaints == []


def test_its_policy_stops_what_should_have_been_escaped(browser: Chromium, written: Any) -> None:
    page = written("stable")
    planted = "<script>document.title = 'taken'</script><img src=x onerror=alert(1)>"
    page.write_text(page.read_text().replace("</main>", f"{planted}</main>"))
    browser.show(page)
    assert browser.value("document.title") == "stable: shop.yaml (tidegate check)"
    assert any("Content Security Policy" in complaint for complaint in browser.complaints)


OPEN_ALL = "document.querySelectorAll('details').forEach(d => { d.open = true })"
TOO_WIDE = """[...document.querySelectorAll('body *')].filter(e =>
    e.getBoundingClientRect().right > %d + 0.5 && !e.closest('.scroll, .skip, thead, svg')
).map(e => e.tagName + '.' + e.className)"""


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_it_never_scrolls_sideways(browser: Chromium, written: Any, name: str, width: int) -> None:
    browser.show(written(name), width=width)
    browser.value(OPEN_ALL)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE % width) == []


def test_a_page_that_is_too_wide_would_be_seen(browser: Chromium, written: Any) -> None:
    browser.show(written("stable"), width=360)
    browser.value("document.querySelector('main').style.width = '500px'")
    assert browser.value(TOO_WIDE % 360) != []


@pytest.mark.parametrize(("name", "plots"), [("marketplace", 3), ("storm", 2)])
def test_labels_of_an_axis_never_touch(
    browser: Chromium, written: Any, name: str, plots: int
) -> None:
    browser.show(written(name), width=360)
    touching = """[...document.querySelectorAll('.plot')].map(plot => {
        const boxes = [...plot.querySelectorAll(':scope > text')]
            .map(text => text.getBoundingClientRect())
        return boxes.slice(1).filter((box, i) => box.left < boxes[i].right + 4).length })"""
    assert browser.value(touching) == [0] * plots


def test_tab_reaches_every_table_and_enter_opens_it(browser: Chromium, written: Any) -> None:
    browser.show(written("marketplace"))
    where = """(() => { const e = document.activeElement
        return e.closest('details') ? e.tagName + ' ' + e.closest('figure').id : e.tagName })()"""
    visited = []
    for _ in range(20):
        browser.press("Tab")
        place = browser.value(where)
        if place == "BODY":
            break
        visited.append(place)
        if place.startswith("SUMMARY"):
            browser.press("Enter", "\r")
    figures = browser.value("[...document.querySelectorAll('figure')].map(f => f.id)")
    assert len(figures) == 3
    assert visited == ["A", *(f"{tag} {f}" for f in figures for tag in ("SUMMARY", "DIV"))]
    assert browser.value("document.querySelectorAll('details:not([open])').length") == 0


def test_it_follows_light_and_dark(browser: Chromium, written: Any) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        browser.show(written("marketplace"), scheme=scheme)
        grounds.append(browser.value("getComputedStyle(document.body).backgroundColor"))
        stroke = "getComputedStyle(document.querySelector('path.goodput')).stroke"
        grounds.append(browser.value(stroke))
    assert grounds == [
        *("rgb(255, 255, 255)", "rgb(10, 88, 168)"),
        *("rgb(20, 23, 28)", "rgb(124, 184, 255)"),
    ]


def test_a_screen_reader_hears_what_a_chart_shows(browser: Chromium, written: Any) -> None:
    browser.show(written("marketplace"))
    nodes = browser.ask("Accessibility.getFullAXTree")["nodes"]
    names = {
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if "role" in node
    }
    images = {name for role, name in names if role == "image"}
    assert len(images) == 3
    assert any("attempts peak at 3,000/s" in name for name in images)
    assert ("columnheader", "in the end") in names
    assert ("rowheader", "readers") in names
