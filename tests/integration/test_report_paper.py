"""The report on paper and by keyboard, in a real browser."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servetop.run.search.result_page import recording_html
from tests.integration.headless_browser import started_browser

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    started = started_browser()
    yield started
    started.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of a sample."""
    target = tmp_path_factory.mktemp("page") / "page.html"
    target.write_text(recording_html("sample"), encoding="utf-8")
    return target.as_uri()


def test_a_dark_page_is_printed_in_the_colours_of_paper(browser: Any, page: str) -> None:
    ink = "return getComputedStyle(document.documentElement).getPropertyValue('--ink')"
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    browser.get(page)
    dark = browser.execute_script(ink)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(ink) == "#1b1f24" != dark
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(ink) == dark
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_arrow_keys_read_the_heat_map(browser: Any, page: str) -> None:
    browser.get(page)
    figure = browser.find_element("css selector", "figure:has(canvas[role=img])")
    read = figure.find_element("css selector", ".read")
    figure.send_keys("\ue014")
    fullest = read.text
    assert re.fullmatch(r"\d+:\d\d: \d+ requests? with .+ to .+", fullest)
    figure.send_keys("\ue014")
    assert re.fullmatch(r"\d+:\d\d: \d+ requests? with .+ to .+", read.text)
    assert read.text != fullest
    figure.send_keys("\ue00c")
    assert read.text == ""


def test_the_page_prints(browser: Any, page: str, tmp_path: Path) -> None:
    browser.get(page)
    pdf = base64.b64decode(browser.print_page())
    (tmp_path / "page.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
