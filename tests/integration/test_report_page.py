"""The report in a real browser: no load, limits that count again, hover, zoom, other schemes, print, hostile text."""

from __future__ import annotations

import contextlib
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.load_requests import load_requests
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.comparison_html import comparison_html
from servetop.reports.page.comparison_page import comparison_page
from servetop.reports.page.page_html import page_html
from servetop.reports.page.report_page import report_page
from servetop.reports.page.watches_page import watches_html, watches_page
from servetop.reports.summary.cooldown import CoolDowns, whole_selection
from tests.hostile_recording import write_hostile_recording
from tests.integration.headless_browser import started_browser
from tests.judgement.brief_recordings import record_briefly
from tests.judgement.recorded_search import record_search
from tests.judgement.searched_servers import draw_case
from tests.recorded_watches import watch_of_three

pytestmark = pytest.mark.integration
GOLDEN = Path(__file__).parents[1] / "golden"
ATTACK = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>\"><svg onload='window.owned=1'>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    started = started_browser(requests=True)
    yield started
    started.quit()


def written(recording: Path, folder: Path) -> tuple[str, RunSummary]:
    """The address of a recording's page, and its summary."""
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        page = report_page(reader, name="sample")
    target = folder / "page.html"
    target.write_text(page_html(page), encoding="utf-8")
    return target.as_uri(), page.summary


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, RunSummary]:
    return written(resolve("sample"), tmp_path_factory.mktemp("page"))


def errors(browser: Any) -> list[str]:
    """What the browser logged since the last call, such as an exception or a violation of the policy."""
    return [each["message"] for each in browser.get_log("browser")]


def requested(browser: Any) -> list[str]:
    """The addresses that the browser asked for since the last call."""
    events = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    return [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]


def number(browser: Any, name: str) -> float:
    return float(browser.find_element("id", name).get_attribute("data-value"))


def set_limit(browser: Any, metric: str, text: str) -> None:
    """Write milliseconds into the field of a limit; nothing is no limit."""
    browser.execute_script(
        "const field = document.querySelector(`[data-field=${arguments[0]}]`);"
        "field.value = arguments[1]; field.dispatchEvent(new Event('change'))",
        metric,
        text,
    )


def test_the_page_loads_nothing_but_itself_and_logs_no_error(browser: Any, sample: tuple[str, RunSummary]) -> None:
    requested(browser), errors(browser)
    browser.get(sample[0])
    assert requested(browser) == [sample[0]]
    assert errors(browser) == []
    assert browser.find_element("tag name", "h1").text.startswith("KV-bound from 0:49")
    assert len(browser.find_elements("css selector", "#charts canvas")) >= 10


def test_the_policy_stops_what_a_script_would_load(browser: Any, sample: tuple[str, RunSummary]) -> None:
    browser.get(sample[0])
    requested(browser)
    refused = browser.execute_async_script(
        "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done(false), () => done(true))"
    )
    assert refused is True
    assert requested(browser) == []


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, RunSummary]:
    folder = tmp_path_factory.mktemp("sweep")
    recording = folder / "sweep.servetop"
    recording.write_bytes(lzma.decompress((GOLDEN / "h200_sweep.servetop.xz").read_bytes()))
    page, summary = written(recording, folder)
    return page, recording, summary


def recounted(browser: Any) -> dict[tuple[int, ...], str]:
    """The texts of the cells of the table that counts again, by their stages."""
    places = browser.find_elements("css selector", "[data-recounted-stages]")
    return {tuple(map(int, each.get_attribute("data-recounted-stages").split())): each.text for each in places}


def goodput_of(recording: Path, summary: RunSummary, limit: float) -> dict[tuple[int, ...], float]:
    """Requests/s of each cell with TTFT within a limit, from the requests of the recording."""
    assert summary.sweep is not None
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        run = load_run(reader)
        requests = load_requests(reader, whole_selection(run, CoolDowns.load(reader, run)), others=("stage",))
    good = requests.with_status(RequestStatus.OK) & (requests.first_token_at - requests.sent <= limit)
    seconds = {each.stage: each.measured.requests.duration for each in summary.stages}
    return {
        cell.stages: float(
            np.mean([good[requests.others["stage"] == stage].sum() / seconds[stage] for stage in cell.stages])
        )
        for cell in summary.sweep.cells
    }


def test_the_cells_of_a_sweep_are_counted_again_and_the_best_one_moves(
    browser: Any, sweep: tuple[str, Path, RunSummary]
) -> None:
    page, recording, summary = sweep
    browser.get(page)
    stars = set()
    for limit in (10.0, 0.2, 0.05):
        for metric in ("tpot", "e2el"):
            set_limit(browser, metric, "")
        set_limit(browser, "ttft", f"{1000 * limit:g}")
        shown, expected = recounted(browser), goodput_of(recording, summary, limit)
        assert shown.keys() == expected.keys()
        for stages, text in shown.items():
            assert float(text.split()[0].replace(",", "")) == pytest.approx(expected[stages], rel=0.006)
        stars.add(tuple(stages for stages, text in shown.items() if "★" in text))
    assert len(stars) > 1
    assert all(len(each) <= 1 for each in stars)


def test_at_the_recorded_limits_the_goodput_is_the_summarys(browser: Any, sample: tuple[str, RunSummary]) -> None:
    browser.get(sample[0])
    requests = sample[1].requests
    assert number(browser, "goodput") == requests.request_goodput
    set_limit(browser, "ttft", "")
    assert number(browser, "goodput") == requests.request_throughput
    assert number(browser, "attainment") == requests.completed / (requests.num_prompts - requests.cancelled)
    set_limit(browser, "ttft", "1")
    assert number(browser, "goodput") == 0.0
    button = next(each for each in browser.find_elements("css selector", "#limits button"))
    button.click()
    assert number(browser, "goodput") == requests.request_goodput


def test_a_slider_moves_by_keys_and_a_stricter_limit_keeps_fewer(browser: Any, sample: tuple[str, RunSummary]) -> None:
    browser.get(sample[0])
    slider = browser.find_element("css selector", "[data-limit=e2el]")
    assert slider.get_attribute("aria-label") == "Limit of E2EL"
    before = number(browser, "goodput")
    slider.send_keys("\ue012" * 200)  # arrow to the left
    assert number(browser, "goodput") < before
    assert "E2EL" in browser.find_element("css selector", "#limits .outcome").text


def test_arrow_keys_move_one_cursor_over_all_charts(browser: Any, sample: tuple[str, RunSummary]) -> None:
    browser.get(sample[0])
    figure = browser.find_element("css selector", "#charts figure")
    figure.send_keys("\ue014" * 30)  # arrow to the right
    at = browser.execute_script("return CHARTS.slice(0, 6).map(each => each.plot.cursor.idx)")
    assert at == [29] * 6
    value = browser.find_element("css selector", "#charts .u-legend .u-value").text
    assert value == "0:29"


def test_each_chart_says_its_units_and_fits_its_data(browser: Any, sample: tuple[str, RunSummary]) -> None:
    browser.get(sample[0])
    preemptions = "return CHARTS[5].plot.axes[2].values(null, [5, 10])"
    assert browser.execute_script(preemptions) == ["5/s", "10/s"]
    curve = (
        "const plot = CHARTS[8].plot;"
        "return [plot.data[0][0] / plot.scales.x.min, plot.scales.x.max / plot.data[0].at(-1)]"
    )
    assert browser.execute_script(curve) == pytest.approx([1.15, 1.15], abs=0.01)
    key = browser.find_element("css selector", ".choice .key").text
    most = browser.execute_script("return Math.max(...heatData('ttft').counts)")
    assert key == f"■ {most} requests, paler: fewer"


def test_zooming_one_chart_zooms_all_and_escape_shows_the_whole_run(
    browser: Any, sample: tuple[str, RunSummary]
) -> None:
    browser.get(sample[0])
    ranges = "return CHARTS.slice(0, 6).map(each => [each.plot.scales.x.min, each.plot.scales.x.max])"
    whole = browser.execute_script(ranges)
    over = browser.find_element("css selector", "#charts .u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
    actions = pytest.importorskip("selenium.webdriver").ActionChains(browser)
    actions.move_to_element_with_offset(over, -100, 0).click_and_hold().move_by_offset(120, 0).release().perform()
    zoomed = browser.execute_script(ranges)
    assert all(low > whole[0][0] and high < whole[0][1] for low, high in zoomed)
    browser.find_element("css selector", "#charts figure").send_keys("\ue00c")
    assert browser.execute_script(ranges) == whole


@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_width_and_no_scheme_makes_the_page_scroll_sideways(
    browser: Any, sample: tuple[str, RunSummary], width: int, scheme: str, tmp_path: Path
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(sample[0])
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    browser.save_screenshot(str(tmp_path / "page.png"))
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_page_of_two_recordings_counts_both_at_other_limits(browser: Any, tmp_path: Path) -> None:
    loads = (StageConfig(request_rate=10.0, duration=10.0), StageConfig(request_rate=20.0, duration=15.0))
    for name, slower in (("old", None), ("new", {"c0": "0.004"})):
        record_briefly(tmp_path / f"{name}.servetop", *loads, settings=slower, goodput={"ttft": 0.02})
    page = comparison_page((str(tmp_path / "old.servetop"), str(tmp_path / "new.servetop")))
    (tmp_path / "page.html").write_text(comparison_html(page), encoding="utf-8")
    errors(browser)
    browser.get((tmp_path / "page.html").as_uri())
    assert errors(browser) == []
    for letter, each in page.pages.items():
        assert number(browser, f"goodput-{letter}") == each.summary.requests.request_goodput
    set_limit(browser, "ttft", "")
    for letter, each in page.pages.items():
        assert number(browser, f"goodput-{letter}") == each.summary.requests.request_throughput
        assert browser.find_element("css selector", f"[data-within-run={letter}]").text == "100 %"
    assert len(browser.find_elements("css selector", "#charts canvas")) >= 12


@pytest.mark.parametrize("width", [360, 1400])
def test_the_page_of_two_watches_draws_both_at_every_width(browser: Any, tmp_path: Path, width: int) -> None:
    paths = [watch_of_three(tmp_path / f"{name}.servetop") for name in ("last-week", "this-week")]
    (tmp_path / "page.html").write_text(watches_html(watches_page(paths)), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    errors(browser)
    try:
        browser.get((tmp_path / "page.html").as_uri())
        assert errors(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert len(browser.find_elements("css selector", "#charts canvas")) == 5
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_page_of_a_search_shows_the_load_under_the_cursor(browser: Any, tmp_path: Path) -> None:
    record_search(tmp_path / "run.servetop", draw_case("closed loop", 21), seed=1, budget=60.0, cuts={})
    address, _ = written(tmp_path / "run.servetop", tmp_path)
    errors(browser)
    browser.get(address)
    assert errors(browser) == []
    figures = browser.find_elements("css selector", "#search figure")
    assert len(figures) == 2
    figures[0].send_keys("\ue014")  # arrow to the right: the smallest load
    texts = [each.text for each in figures[0].find_elements("css selector", ".u-legend .u-value")]
    assert texts[0].startswith("1 from 0:00")
    assert " of " in texts[1]


def test_what_a_stranger_wrote_into_a_recording_is_text(browser: Any, tmp_path: Path) -> None:
    write_hostile_recording(tmp_path / "run.servetop", ATTACK)
    address, _ = written(tmp_path / "run.servetop", tmp_path)
    requested(browser), errors(browser)
    browser.get(address)
    assert browser.execute_script("return window.owned") is None
    assert browser.execute_script("return document.querySelectorAll('img, svg, iframe').length") == 0
    assert requested(browser) == [address]
    assert errors(browser) == []
    assert "<img src=x" in browser.find_element("css selector", ".subject").text
