"""The table of the floor has bound, median, factor and, in one line, what the bound assumes."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.answer_section import answer_section
from servetop.reports.page.floor_table import floor_table
from servetop.reports.page.report_page import ReportPage, report_page


@pytest.fixture(scope="module")
def sample() -> ReportPage:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        return report_page(reader, name="sample")


def test_it_has_the_factor_of_each_latency(sample: ReportPage) -> None:
    assert sample.floor is not None
    text = floor_table(sample.floor, sample.summary)
    assert '<th scope="row">TTFT</th><td>8.50 ms</td><td>25.1 ms</td><td>2.95 ×</td>' in text
    assert '<th scope="row">TPOT</th><td>8.56 ms</td><td>19.9 ms</td><td>2.32 ×</td>' in text
    assert "on A100-40GB, Llama-2-7b in 16 bits: to the first token one reading of the weights" in text
    assert "the weights (13.2 GB) and the KV of 192 tokens at 1,555 GB/s" in text


def test_it_says_what_else_it_follows_from(sample: ReportPage) -> None:
    assert sample.floor is not None
    text = floor_table(replace(sample.floor, gpus=4, prompt_is_computed=True), sample.summary)
    assert "on 4 × A100-40GB" in text
    assert "to the first token the arithmetic of 128 tokens of prompt at 312 TFLOP/s" in text


def test_a_latency_that_is_unknown_has_no_factor(sample: ReportPage) -> None:
    assert sample.floor is not None
    measured = replace(sample.summary.measured, requests=replace(sample.summary.requests, latencies={}))
    text = floor_table(sample.floor, replace(sample.summary, measured=measured))
    assert text.count("<td>–</td><td>–</td>") == 2


def test_the_page_has_it_only_where_the_facts_are_known(sample: ReportPage) -> None:
    assert "Physical floor" in answer_section(sample)
    assert "Physical floor" not in answer_section(replace(sample, floor=None))
