"""Chromium without a window, driven by selenium; a test without it is skipped."""

from __future__ import annotations

import shutil
from typing import Any

import pytest


def started_browser(*, requests: bool = False) -> Any:
    """A browser with its log of errors, and with that of its `requests`; the caller quits it."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver (tests/integration/install_browser.sh)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1600,1000"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", **({"performance": "ALL"} if requests else {})})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
