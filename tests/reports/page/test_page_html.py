"""The page of a recording: answer, figures, policy, size, and text from strangers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.core.system.package_data import package_path
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.chart_specs import time_charts
from servetop.reports.page.page_html import page_html
from servetop.reports.page.report_page import ReportPage, SearchTexts, report_page
from tests.hostile_recording import write_hostile_recording

VENDORED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE.uplot.MIT": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""SHA-256 of the files of uplot 1.6.32, as on npm."""
ATTACK = "</script><script>window.owned=1</script><!--\"'><img src=x onerror=window.owned=1>${owned}\x1b]0;x\x07\u202e"


def page_of(path: Path, **options: Any) -> ReportPage:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return report_page(reader, name="sample", **options)


@pytest.fixture(scope="module")
def sample() -> tuple[ReportPage, str]:
    page = page_of(resolve("sample"))
    return page, page_html(page)


def data_of(text: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found)


def test_the_vendored_files_are_those_of_uplot() -> None:
    folder = package_path("servetop.reports.page", "data")
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in VENDORED} == VENDORED


def test_the_heading_is_the_verdict_and_the_story_is_that_of_the_summary(sample: tuple[ReportPage, str]) -> None:
    page, text = sample
    assert page.summary.story is not None
    (heading,) = re.findall("<h1>(.*?)</h1>", text)
    assert heading == page.summary.story.headline
    assert all(f"<span>{line.text}</span>" in text for line in page.summary.story.lines if not line.advice)
    assert "▸ KV memory" in text
    assert '<ol class="ranked"><li>The same load with the advised batch size:' in text
    assert "<code>servetop rerun sample --max-num-seqs 32</code>" in text


def test_the_tables_have_the_figures_of_the_summary(sample: tuple[ReportPage, str]) -> None:
    _, text = sample
    row = '<th scope="row">TTFT</th><td>1,042</td><td>25.1</td><td>3,977</td><td>4,736</td><td>5,835</td>'
    assert row in text
    assert "Goodput (ttft:500 ms)</th><td>4.89 req/s" in text
    assert data_of(text)["runs"][0]["duration"] == sample[0].summary.requests.duration


def test_the_policy_allows_nothing_but_the_pages_own_script_and_style(sample: tuple[ReportPage, str]) -> None:
    _, text = sample
    (policy,) = re.findall('http-equiv="Content-Security-Policy" content="(.*?)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    for kind, pattern in (("script-src", "<script>(.*?)</script>"), ("style-src", "<style>(.*?)</style>")):
        (inline,) = re.findall(pattern, text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert rules.pop(kind) == f"'sha256-{digest}'"
    assert rules == {"base-uri": "'none'", "form-action": "'none'"}


def test_nothing_is_loaded_from_elsewhere(sample: tuple[ReportPage, str]) -> None:
    _, text = sample
    assert not re.search(r"<(?:link|img|iframe|object|embed|base|form)\b|\ssrc=|\shref=|@import|url\(", text)
    assert not re.search(r"\s(?:style|on[a-z]+)=", re.sub("<script.*?</script>", "", text, flags=re.DOTALL))


def test_a_page_of_a_short_run_is_small(sample: tuple[ReportPage, str]) -> None:
    assert len(sample[1].encode()) < 250_000


def test_every_text_of_a_hostile_recording_is_inert(tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    write_hostile_recording(path, ATTACK)
    text = page_html(page_of(path, texts=SearchTexts(answers=[ATTACK, ATTACK])))
    assert text.count("<script>") == 1
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in re.sub("<script.*?</script>", "", text, flags=re.DOTALL)
    assert data_of(text)["starts"][0]["label"] == ATTACK


def test_the_answers_of_a_search_are_the_heading(tmp_path: Path) -> None:
    texts = SearchTexts(answers=["12.1 req/s keep p99 TTFT < 500 ms", "second answer"])
    text = page_html(page_of(resolve("sample"), texts=texts))
    assert "<h1>12.1 req/s keep p99 TTFT &lt; 500 ms</h1>" in text
    assert '<p class="answer">second answer</p>' in text


def test_a_run_without_tokens_has_no_chart_of_them(sample: tuple[ReportPage, str]) -> None:
    time = sample[0].time
    assert "tokens" in [each.name for each in time_charts(time)]
    none = replace(time, columns={**time.columns, "output_tokens": 0 * time.columns["output_tokens"]})
    assert "tokens" not in [each.name for each in time_charts(none)]
