"""The page of a run answers in text what limited it, its largest load, its trust, what to change, how to repeat it.

A browser without scripts shows them too, so the first paint does not wait for the data of the charts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from servetop.analysis.summary.story_summary import StorySummary
from servetop.analysis.summary.summary_types import RunSummary
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.page_html import page_html
from servetop.reports.page.report_page import report_page
from tests.integration.headless_browser import started_browser

pytestmark = pytest.mark.integration
NAMES = ("sample", "sample:h200")


@pytest.fixture(scope="module", params=[True, False], ids=["scripts", "no scripts"])
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    started = started_browser()
    if not request.param:
        started.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    yield started
    started.quit()


@pytest.fixture(scope="module", params=NAMES)
def shown(
    request: pytest.FixtureRequest, browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, RunSummary]:
    """A browser with the page of a recording, and the summary of that recording."""
    with contextlib.closing(RecordingReader.open(resolve(request.param))) as reader:
        page = report_page(reader, name=request.param)
    target = tmp_path_factory.mktemp("page") / "page.html"
    target.write_text(page_html(page), encoding="utf-8")
    browser.get(target.as_uri())
    return browser, page.summary


def story_of(summary: RunSummary) -> StorySummary:
    assert summary.story is not None
    return summary.story


def section(browser: Any, title: str) -> Any:
    """The part of the page with a heading."""
    (found,) = browser.find_elements("xpath", f"//section[h2='{title}' or h3='{title}']")
    assert found.is_displayed()
    return found


def texts(place: Any, selector: str) -> list[str]:
    """The texts of elements that are shown, by their selector."""
    return [each.text for each in place.find_elements("css selector", selector) if each.is_displayed()]


def test_what_limited_the_run_is_the_heading_and_the_marked_row(shown: tuple[Any, RunSummary]) -> None:
    browser, summary = shown
    story = story_of(summary)
    heading = browser.find_element("tag name", "h1")
    assert (heading.aria_role, heading.text) == ("heading", story.headline)
    assert heading.rect["y"] + heading.rect["height"] <= 1000, "without scrolling"
    lines = texts(section(browser, "What happened"), "ol > li > span:last-child")
    assert lines == [each.text for each in story.lines if not each.advice]
    table = section(browser, "Capacity").find_element("tag name", "table")
    marked = [each for each in table.find_elements("css selector", "tbody tr") if "sets the limit" in each.text]
    assert [each.find_element("tag name", "th").text for each in marked] == ["▸ KV memory"]
    assert f"{summary.measured.server.preemptions:,.0f} preemptions" in marked[0].text


def test_the_largest_load_within_the_objective_is_in_the_capacity(shown: tuple[Any, RunSummary]) -> None:
    browser, summary = shown
    story = story_of(summary)
    rows = section(browser, "Capacity").find_elements("css selector", "tbody tr")
    (text,) = [row.find_element("tag name", "td").text for row in rows if row.text.startswith("Latency objective")]
    if story.sustainable_rate is None:
        assert text.startswith("not known from this run")
        return
    assert f"{story.sustainable_rate:.3g} req/s" in text
    assert f"TTFT ≤ {story.ttft_objective_ms:g} ms" in text


def test_whether_the_figures_can_be_trusted_is_said_with_its_reasons(shown: tuple[Any, RunSummary]) -> None:
    browser, summary = shown
    trust = summary.measured.trust
    place = section(browser, "Trust")
    assert texts(place, "strong.trust") == [trust.verdict]
    assert all(reason in place.text for reason in trust.reasons)


def test_what_to_change_is_the_advice_of_the_summary(shown: tuple[Any, RunSummary]) -> None:
    browser, summary = shown
    place = section(browser, "Try next")
    advice = [each.text for each in story_of(summary).lines if each.advice]
    assert advice
    assert texts(place, "ul > li") == advice


def test_how_to_repeat_the_run_is_a_command(shown: tuple[Any, RunSummary]) -> None:
    browser, _ = shown
    commands = texts(section(browser, "Repeat it"), "code")
    assert [each for each in commands if each.startswith("servetop rerun sample")]


def test_only_the_charts_need_scripts(shown: tuple[Any, RunSummary], request: pytest.FixtureRequest) -> None:
    browser, _ = shown
    without = "no scripts" in request.node.name
    assert bool(browser.find_elements("css selector", "#charts canvas")) is not without


def test_lines_of_a_chart_have_marks_of_their_own_in_the_legend(
    shown: tuple[Any, RunSummary], request: pytest.FixtureRequest
) -> None:
    browser, _ = shown
    if "no scripts" in request.node.name:
        return
    (load,) = browser.find_elements("xpath", "//figure[contains(., 'Load: requests per second')]")
    marks = load.find_elements("css selector", ".u-series:not(.edge) .u-marker")
    styles = [each.value_of_css_property("border-top-style") for each in marks if each.is_displayed()]
    assert len(styles) >= 3
    assert len(set(styles)) == len(styles)
