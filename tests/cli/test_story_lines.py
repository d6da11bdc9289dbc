"""The story of a run on the terminal and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.story_summary import StoryLineSummary, StorySummary
from servetop.cli.main import main
from servetop.cli.report.report import print_story
from servetop.cli.report.story_lines import story_lines, story_markdown

STORY = StorySummary(
    cause="KV-bound", headline="KV-bound from 0:54; try max_num_seqs 32", onset=54.0, until=None, onset_rate=13.9,
    worst_p99_ttft_ms=17_000.0, capacity=12.8, sustainable_rate=11.0, sustainable_is_lower_bound=False,
    sustainable_rate_interval=(9.4, 12.1), knee_rate=12.6, knee_interval=None,
    ttft_objective_ms=500.0, advised_max_num_seqs=32,
    lines=(
        StoryLineSummary(at=54.2, text="the KV cache fills", advice=False),
        StoryLineSummary(at=None, text="nothing failed", advice=False),
        StoryLineSummary(at=None, text="try max_num_seqs 32", advice=True),
    ),
)  # fmt: skip


def test_each_line_has_its_time_and_advice_an_arrow() -> None:
    assert story_lines(STORY) == [
        "verdict    KV-bound from 0:54; try max_num_seqs 32",
        "     0:54  the KV cache fills",
        "           nothing failed",
        "        →  try max_num_seqs 32",
    ]


def test_markdown_is_a_bold_headline_and_a_list() -> None:
    assert story_markdown(STORY) == [
        "**KV-bound from 0:54; try max\\_num\\_seqs 32**",
        "",
        "- 0:54 the KV cache fills",
        "- nothing failed",
        "- → try max\\_num\\_seqs 32",
    ]


def test_texts_of_a_server_cannot_break_the_lines() -> None:
    hostile = StoryLineSummary(at=1.0, text="requests fail: \x1b[31m<b>\n# red", advice=False)
    story = replace(STORY, lines=(hostile,))
    shown: Sequence[str] = [*story_lines(story)[1:], *story_markdown(story)[2:]]
    assert all("\x1b" not in line and "\n" not in line for line in shown)
    assert "\\<b\\>" in shown[1]


def test_the_story_of_a_golden_recording_ends_with_advice(capsys: pytest.CaptureFixture[str]) -> None:
    recording = Path(__file__).parents[1] / "golden" / "whitepaper.servetop"
    assert print_story(str(recording)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("verdict    highest throughput: batch 256 at 64 req/s (")
    assert "→" in lines[-1]


def test_the_story_as_json_is_that_of_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    recording = str(Path(__file__).parents[1] / "golden" / "whitepaper.servetop")
    assert main(["summary", recording, "--story", "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert main(["summary", recording, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["story"] == story
    assert main(["summary", recording, "--markdown", "--json"]) == 2
    assert "exclude each other" in capsys.readouterr().err
