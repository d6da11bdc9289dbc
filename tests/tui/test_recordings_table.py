"""The table of recordings: filter, sparklines and rows, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.interfaces.recording_store import (
    RecordingInfo,
    RecordingPreview,
    RecordingResults,
    RecordingState,
)
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.recordings_table import draw_details, draw_recordings, matches, scrolled, sparkline

NOON = 1_700_000_000.0
HOSTILE = "\x1b[2J[red]evil[/] \u202egpj"


def test_a_sparkline_shows_the_peaks_and_marks_zeros() -> None:
    assert sparkline([0, 1, 2, 4, 8], 24) == "·▂▃▅█"
    assert sparkline([0, 1, 2, 4, 8, 0], 3) == "▂▅█"
    assert sparkline([], 24) == sparkline([1.0], 0) == ""
    assert sparkline([0.0, 0.0], 24) == "··"


@given(st.lists(st.floats(0, 1e9), max_size=60), st.integers(0, 40))
def test_a_sparkline_never_takes_more_cells_than_it_has(values: list[float], cells: int) -> None:
    assert len(sparkline(values, cells)) <= cells


@given(st.integers(0, 50), st.integers(0, 200), st.integers(1, 40))
def test_scrolling_keeps_the_cursor_on_the_screen(top: int, cursor: int, visible: int) -> None:
    assert scrolled(top, cursor, visible) <= cursor < scrolled(top, cursor, visible) + visible


@pytest.mark.parametrize("width", [40, 80, 120, 160, 220])
def test_hostile_names_stay_in_their_row(width: int) -> None:
    path = Path(f"/tmp/{HOSTILE}.servetop")
    info = RecordingInfo(
        path=path, started=NOON, state=RecordingState.LIVE, engine=HOSTILE, model=HOSTILE, label=HOSTILE
    )
    known = {path: RecordingPreview(info=info, output_rates=(1.0, 2.0))}
    rows = [*draw_recordings([path], known, cursor=0, top=0, size=(width, 5)), *draw_details(path, known[path], width)]
    text = Lines(rows).plain
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]evil[/]" in text or width == 40
    assert all(len(line) <= width for line in text.splitlines())


def test_queries_match_words_in_any_order_and_case() -> None:
    path = Path("/tmp/20261121-vllm.servetop")
    info = RecordingInfo(path=path, started=NOON, state=RecordingState.FINISHED, model="Llama-2-7b", label="night")
    assert matches(path, RecordingPreview(info=info), "llama VLLM")
    assert matches(path, RecordingPreview(info=info), "")
    assert not matches(path, RecordingPreview(info=info), "vllm mixtral")
    assert not matches(path, None, "llama")


def test_a_watch_is_marked_and_has_no_requests_of_its_own() -> None:
    path = Path("/tmp/replicas.servetop")
    info = RecordingInfo(path=path, started=NOON, state=RecordingState.FINISHED, duration=112.0, watch=True)
    rows = draw_recordings([path], {path: RecordingPreview(info=info)}, cursor=0, top=0, size=(160, 5))
    head, row = Lines(rows).plain.split("\n")
    place = head.index("requests") + len("requests")
    assert row[:place].endswith("  watch")
    assert row[place : head.index("peak tok/s") + len("peak tok/s")].split() == ["–"]


def listed(width: int, results: RecordingResults) -> tuple[str, str]:
    """The column titles and the row of one recording."""
    path = Path("/tmp/overload.servetop")
    info = RecordingInfo(path=path, started=NOON, state=RecordingState.FINISHED, duration=112.0, requests=1148)
    known = {path: RecordingPreview(info=info, results=results, output_rates=(1.0, 2.0))}
    head, row = Lines(draw_recordings([path], known, cursor=0, top=0, size=(width, 5))).plain.split("\n")
    return head, row


@pytest.mark.parametrize("width", [80, 120, 160, 220])
def test_latency_goodput_and_preemptions_have_columns_below_their_titles(width: int) -> None:
    head, row = listed(width, RecordingResults(ttft_p99=17.05, goodput_share=0.328, preemptions=524))
    values = {"TTFT p99": "17.1 s", "goodput": "32.8 %"} | ({"preempt.": "524"} if width >= 120 else {})
    for title, value in values.items():
        end = head.index(title) + len(title)
        assert row[:end].endswith(f" {value}")
    unknown = listed(width, RecordingResults())[1]
    assert unknown.count("–") >= len(values)


def test_a_verdict_has_its_own_column_if_a_recording_has_one() -> None:
    verdict = "KV-bound from 0:54 at 14.5 req/s"
    head, row = listed(160, RecordingResults(verdict=verdict, preemptions=524))
    assert row.index(verdict) == head.index("verdict")
    assert "verdict" not in listed(160, RecordingResults())[0]
    path = Path("/tmp/overload.servetop")
    info = RecordingInfo(path=path, started=NOON, state=RecordingState.FINISHED)
    preview = RecordingPreview(info=info, results=RecordingResults(verdict=verdict))
    assert verdict in Lines(draw_details(path, preview, 100)).plain
