"""The dashboard in a real browser: the page opens, its numbers move, a key steers the run."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servetop.recordings.reader import RecordingReader
from tests.harness import Servetop, answers, opened, received, wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver (tests/integration/install_browser.sh)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1600,1000"):
        options.add_argument(word)
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield started
    started.quit()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def refused(url: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_the_page_opens_shows_moving_numbers_and_a_key_steers(browser: Any, tmp_path: Path) -> None:
    servetop, recording, port = Servetop(tmp_path), tmp_path / "run.servetop", free_port()
    url = f"http://127.0.0.1:{port}"
    words = ("--web", "--web-port", str(port), "--request-rate", "8", "--record", str(recording))
    with servetop.started(*words) as process:
        reader = wait_for(lambda: opened(recording), seconds=30, what="the recording")
        wait_for(lambda: answers(url), seconds=30, what="the page")
        assert refused(url, Origin="http://elsewhere.example") == 403
        assert refused(url, Host=f"elsewhere.example:{port}") == 403
        wait_for(lambda: received(reader), seconds=30, what="the first tokens")
        browser.get(url)
        wait_for(lambda: browser.find_elements("css selector", "textarea"), seconds=30, what="the terminal")
        first = wait_for(lambda: _picture(browser), seconds=30, what="a picture")
        wait_for(lambda: _picture(browser) != first, seconds=30, what="a moving picture")

        loaded = browser.execute_script("return performance.getEntriesByType('resource').map(each => each.name)")
        assert [each for each in loaded if not each.startswith(f"{url}/")] == []

        field = browser.find_element("css selector", "textarea")
        wait_for(lambda: _steered(field, reader), seconds=40, what="the command")
        wait_for(lambda: any(tick.client.gauges.paused for tick in reader.ticks()), seconds=10, what="the pause")
        browser.save_screenshot(str(tmp_path / "page.png"))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert f"the dashboard is at {url}" in err
        assert "Traceback" not in err
        reader.close()


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
