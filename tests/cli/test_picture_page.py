"""`echod picture`: the command, and its page in a real browser: light, dark, narrow and printed, with no request."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support import Home, finding_text, make_project

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A project with a backup, a forgotten entry and an undone job."""
    home = Home(tmp_path_factory.mktemp("home"))
    role = make_project(home.root / "p", "reviewer") / ".rune/echoes/reviewer"
    header = "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"
    first, second = finding_text("Retries need a key"), finding_text("Money <i>is</i> in cents", layer="traced")
    (role / "archive").mkdir()
    (role / "archive/MEMORY-2026-10-01.md").write_text(header + first)
    (role / "MEMORY.md").write_text(f"{header}{first}\n{second}")
    home.run("add", home.root / "p")
    entries = home.json("show", home.root / "p")["entries"]
    for entry in entries:
        home.run("forget", entry["id"], home.root / "p", "--yes")
    home.run("undo", "--last", home.root / "p", "--yes")
    return home


def test_the_terminal_shows_lines_and_reasons(home: Home) -> None:
    screen = home.run("picture", home.root / "p")

    assert max(map(len, screen.splitlines())) <= 80
    assert "forgotten" in screen
    assert "undone: job 2" in screen


def test_json_has_the_data(home: Home) -> None:
    (role,) = home.json("picture", home.root / "p")["roles"]

    assert (role["role"], role["limit"], len(role["left"])) == ("reviewer", 150, 2)
    assert sorted(movement["reversed"] for movement in role["left"]) == [False, True]
    assert role["periods"][0]["lines"]["inscribed"] > 0
    assert role["periods"][-1]["undone"] == 1


def test_the_page_is_a_private_file_and_is_not_printed(home: Home) -> None:
    output = home.run("picture", home.root / "p", "--html", "page.html")
    file = home.root / "page.html"

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert output == "Written: ~/page.html. Open it in a browser.\n"


def test_a_directory_is_no_page(home: Home) -> None:
    done = home.echod("picture", home.root / "p", "--html", home.root)

    assert (done.returncode, "is a directory. Name a file" in done.stderr) == (2, True)


def test_a_role_that_cannot_be_read_is_reported_and_the_others_are_drawn(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path)
    root = make_project(tmp_path / "p", "planner", "reviewer")
    (root / ".rune/echoes/reviewer/MEMORY.md").write_text(finding_text("A"))
    (root / ".rune/echoes/planner/archive").mkdir()
    (root / ".rune/echoes/planner/archive/pruned-2026.md").write_bytes(b"x" * (10 * 1024 * 1024 + 1))

    report = other.json("picture", root)

    assert [role["role"] for role in report["roles"]] == ["reviewer"]
    assert "planner" in report["problems"][0]


class Browser:
    """A headless Chromium that is controlled through two pipes, without a port."""

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        self._commands_out, self._commands_in = os.pipe()
        self._answers_out, self._answers_in = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        shell = f'exec "$0" "$@" 3<&{self._commands_out} 4>&{self._answers_in}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(self._commands_out, self._answers_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )  # fmt: skip
        os.close(self._commands_out)
        os.close(self._answers_in)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def open_tab(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        return self

    def call(self, method: str, **params: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands_in, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def load(self, file: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._answers_out, 1 << 20)
            assert piece, "the browser ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def close(self) -> None:
        os.close(self._commands_in)
        os.close(self._answers_out)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()


@contextmanager
def running_browser(profile: Path) -> Iterator[Browser]:
    browser = Browser(profile)
    try:
        yield browser.open_tab()
    finally:
        browser.close()


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
def test_a_browser_shows_the_page_in_every_way_and_requests_nothing(home: Home, tmp_path: Path) -> None:
    file = home.root / "page.html"
    home.run("picture", home.root / "p", "--html", file)
    backgrounds = set()

    with running_browser(tmp_path) as browser:
        for scheme in ("light", "dark"):
            for width in (360, 1200):
                features = [{"name": "prefers-color-scheme", "value": scheme}]
                browser.call("Emulation.setEmulatedMedia", media="screen", features=features)
                browser.call(
                    "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
                )
                browser.load(file)
                requested = [
                    event["params"]["request"]["url"]
                    for event in browser.events
                    if event["method"] == "Network.requestWillBeSent"
                ]
                assert requested == [file.as_uri()]
                assert [event for event in browser.events if event["method"] == "Log.entryAdded"] == []
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                assert browser.evaluate("document.querySelectorAll('script, i:not(.key i)').length") == 0
                drawn = "[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().width > 200)"
                assert browser.evaluate(drawn) == [True, True]
                ink, paper = browser.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
                backgrounds.add(paper)
                assert contrast(ink, paper) > 7
        browser.call("Emulation.setEmulatedMedia", media="print", features=[])
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        browser.call("Emulation.setDeviceMetricsOverride", width=700, height=900, deviceScaleFactor=1, mobile=False)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 700
        assert len(browser.call("Page.printToPDF")["data"]) > 10_000

    assert len(backgrounds) == 2


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours as WCAG defines it; above 7 is easy to read."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)
