"""The dashboard in a real browser: the page opens, its numbers move, a key steers the run where it may."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import Servetop, opened, received, wait_for
from tests.hostile_recording import write_hostile_recording
from tests.integration.headless_browser import started_browser
from tests.reserved_port import reserved_port

pytestmark = pytest.mark.integration


@pytest.fixture
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    started = started_browser()
    yield started
    started.quit()


@pytest.fixture
def port() -> Iterator[int]:
    """Where the page is served."""
    with reserved_port() as number:
        yield number


def refused(url: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def address(process: subprocess.Popen[str]) -> str:
    """Where the page is, with its token."""
    assert process.stderr is not None
    found = re.search(r"http://\S+", process.stderr.readline())
    assert found is not None
    return found[0]


def test_the_page_opens_shows_moving_numbers_and_a_key_steers(browser: Any, tmp_path: Path, port: int) -> None:
    servetop, recording = Servetop(tmp_path), tmp_path / "run.servetop"
    site = f"http://127.0.0.1:{port}"
    words = ("--web", "--web-steer", "--web-port", str(port), "--request-rate", "8", "--record", str(recording))
    with servetop.started(*words) as process:
        url = address(process)
        assert url.startswith(f"{site}/?token=")
        reader = wait_for(lambda: opened(recording), seconds=30, what="the recording")
        assert refused(url, Origin="http://elsewhere.example") == 403
        assert refused(url, Host=f"elsewhere.example:{port}") == 403
        assert refused(site) == 403
        wait_for(lambda: received(reader), seconds=30, what="the first tokens")
        field = _opened(browser, url)
        assert browser.current_url == f"{site}/"

        loaded = browser.execute_script("return performance.getEntriesByType('resource').map(each => each.name)")
        assert [each for each in loaded if not each.startswith(f"{site}/")] == []
        output = [each["message"] for each in browser.get_log("browser")]
        assert [each for each in output if "Content Security Policy" in each] == []

        wait_for(lambda: _steered(field, reader), seconds=40, what="the command")
        wait_for(lambda: any(tick.client.gauges.paused for tick in reader.ticks()), seconds=10, what="the pause")
        browser.save_screenshot(str(tmp_path / "page.png"))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err
        reader.close()


def test_without_web_steer_a_page_shows_the_run_and_no_key_changes_it(browser: Any, tmp_path: Path, port: int) -> None:
    servetop, recording = Servetop(tmp_path), tmp_path / "run.servetop"
    words = ("--web", "--web-port", str(port), "--request-rate", "8", "--record", str(recording))
    with servetop.started(*words) as process:
        url = address(process)
        reader = wait_for(lambda: opened(recording), seconds=30, what="the recording")
        wait_for(lambda: received(reader), seconds=30, what="the first tokens")
        field = _opened(browser, url)
        for keys in ("p", "+", "]", "b", "n", "o", "e", "renamed\n", "d", "y\n"):
            before = _picture(browser)
            field.send_keys(keys)
            wait_for(lambda: _picture(browser) != before, seconds=30, what="another picture")  # noqa: B023
        assert not reader.poll().commands
        assert [each.name for each in tmp_path.glob("*.servetop")] == ["run.servetop"]
        reader.close()


def test_what_a_stranger_wrote_into_a_recording_is_text_on_the_page_and_nothing_else(
    browser: Any, tmp_path: Path, port: int
) -> None:
    attack = (
        '<script>window.owned=1</script></script><img src=x onerror=window.owned=1>"><svg onload=window.owned=1>'
        "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b]8;;javascript:window.owned=1\x07${owned}</div>"
    )
    recording = tmp_path / "<img src=x onerror=window.owned=1>.servetop"
    write_hostile_recording(recording, attack)
    with Servetop(tmp_path).started("replay", str(recording), "--web", "--web-port", str(port)) as process:
        field = _opened(browser, address(process), moving=False)
        for screen in ("5", "6", "o"):  # log, configuration, recordings
            before = _picture(browser)
            field.send_keys(screen)
            wait_for(lambda: _picture(browser) != before, seconds=30, what="the screen")  # noqa: B023
        assert browser.title == "servetop"
        assert browser.execute_script("return window.owned") is None
        assert browser.execute_script("return document.querySelectorAll('img, svg, body script, iframe').length") == 0
        browser.save_screenshot(str(tmp_path / "page.png"))


def _opened(browser: Any, url: str, *, moving: bool = True) -> Any:
    """The page's field for keys, once the terminal is drawn."""
    browser.get(url)
    wait_for(lambda: browser.find_elements("css selector", "textarea"), seconds=30, what="the terminal")
    first = wait_for(lambda: _picture(browser), seconds=30, what="a picture")
    if moving:
        wait_for(lambda: _picture(browser) != first, seconds=30, what="a moving picture")
    return browser.find_element("css selector", "textarea")


def _picture(browser: Any) -> bytes:
    """The terminal as drawn; empty until there is more than background."""
    picture: bytes = browser.get_screenshot_as_png()
    return picture if len(picture) > 20_000 else b""


def _steered(field: Any, reader: RecordingReader) -> bool:
    """Press the key, until its command is in the recording: the first frames of a page may swallow it."""
    field.send_keys("p")
    with contextlib.suppress(AssertionError):
        wait_for(lambda: reader.poll().commands, seconds=2.0, what="a command")
        return True
    return False
