"""The lines below the tables of a summary, and its story as Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.story_summary import StoryLineSummary, StorySummary
from servetop.analysis.summary.summary_types import RunSummary
from servetop.analysis.summary.trust_types import EngineTimesSummary
from servetop.cli.main import main
from servetop.cli.options.tool_options import SummaryOptions
from servetop.cli.report.report import print_story
from servetop.reports.summary.summary_lines import story_lines, story_markdown, trust_lines
from tests.cli.summaries import TRUST, run, stage

NO_SCRAPE = "the engine's metrics were not scraped while requests were in flight, for 1 s"
SUSPECT = replace(TRUST, verdict="suspect", reasons=("a", "b"), token_source="usage")
LIMITED = replace(SUSPECT, sent_rate=7.0, offered_rate=10.0, sent_exemption="held back by limit 13")
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


def summary(*stages: str | None, **fields: object) -> RunSummary:
    return run(*(stage(f"s{i}", peaks_reason=each) for i, each in enumerate(stages)), **{"trust": SUSPECT} | fields)


@pytest.mark.parametrize(
    ("summary", "lines"),
    [
        (summary(None, None), []),
        (summary(NO_SCRAPE, peaks_reason=NO_SCRAPE), [f"no peaks   {NO_SCRAPE}"]),
        (
            summary(None, NO_SCRAPE, NO_SCRAPE),
            ["no peaks   of s1, s2: no page of the engine's metrics describes their load"],
        ),
        (summary(None, itl_reason="why"), ["no ITL     why"]),
        (summary(None, trust=LIMITED), ["not judged sent / offered 70.0 %: held back by limit 13"]),
    ],
    ids=["all known", "of the run", "of stages", "no ITL", "exempt"],
)
def test_missing_figures_have_their_reason_under_the_verdict(summary: RunSummary, lines: list[str]) -> None:
    assert trust_lines(summary) == ["trust      suspect: a; b; tokens by usage", *lines]


@pytest.mark.parametrize(
    ("compared", "text"),
    [
        (("slip", "sent rate"), "slip and sent rate within limits; nothing of the engine was compared"),
        (("slip", "tokens"), "slip within limits; engine agrees in tokens"),
        (
            ("slip", "loop lag", "requests", "tokens", "TTFT"),
            "slip and loop lag within limits; engine agrees in requests, tokens and TTFT",
        ),
        ((), "nothing of the client was compared; nothing of the engine was compared"),
    ],
)
def test_a_verdict_without_reasons_names_what_was_compared(compared: tuple[str, ...], text: str) -> None:
    assert trust_lines(run(trust=replace(TRUST, compared=compared))) == [f"trust      ok: {text}"]


def test_the_engines_own_times_are_beside_the_clients() -> None:
    times = EngineTimesSummary(
        engine_mean_ttft_ms=7.31, ttft_beyond_engine_ms=38.7, engine_mean_e2el_ms=3010.4, e2el_beyond_engine_ms=-0.4
    )
    assert trust_lines(run(trust=replace(SUSPECT, engine_times=times)))[1:] == [
        "engine     mean TTFT 7.3 ms (client +38.7), E2EL 3,010 ms (client -0.4): network and HTTP server"
    ]


def test_advice_for_the_senders_has_a_line() -> None:
    assert trust_lines(run(trust=replace(SUSPECT, advice="do this")))[1:] == ["senders    do this"]


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
    recording = Path(__file__).parents[2] / "golden" / "whitepaper.servetop"
    assert print_story(SummaryOptions(file=str(recording), story=True)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("verdict    highest throughput: batch 256 at 64 req/s (")
    assert "→" in lines[-1]


def test_the_story_as_json_is_that_of_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    recording = str(Path(__file__).parents[2] / "golden" / "whitepaper.servetop")
    assert main(["summary", recording, "--story", "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert main(["summary", recording, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["story"] == story
    assert main(["summary", recording, "--markdown", "--json"]) == 2
    assert "exclude each other" in capsys.readouterr().err
