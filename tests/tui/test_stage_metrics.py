"""The figures of a stage on the screen count the same requests as the rows of the recording."""

from __future__ import annotations

import contextlib
import itertools
import math
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from servetop.core.tick import TICK_SECONDS
from servetop.recordings.read.reader import RecordingReader
from servetop.tui.app import DashboardApp
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.textual_seam import titles_of

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name", ["vllm", "without_metrics", "whitepaper"])
def test_the_stages_count_each_first_token_of_the_rows(name: str, frame_of: Callable[..., Frame]) -> None:
    path = GOLDEN / f"{name}.servetop"
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages = frame_of(reader, 1e6).per_stage()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((rows,),) = connection.execute(
            "SELECT count(first_token_at) FROM request WHERE stage IN (SELECT number FROM stage WHERE warmup = 0)"
        )
    assert sum(stage.histograms["ttft"].count for stage in stages) == rows > 0


def test_a_tick_that_two_stages_share_counts_for_the_earlier(frame_of: Callable[..., Frame]) -> None:
    path = GOLDEN / "whitepaper.servetop"
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages = frame_of(reader, 1e6).per_stage()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        first_tokens = [at for (at,) in connection.execute("SELECT first_token_at FROM request")]
    ticks = [math.ceil(stage.stage.at / TICK_SECONDS) * TICK_SECONDS for stage in stages]
    edges = [0.0, *ticks[1:], math.inf]
    expected = [sum(start <= at < end for at in first_tokens) for start, end in itertools.pairwise(edges)]
    assert [stage.histograms["ttft"].count for stage in stages] == expected != [320] * 4


LONG = "whole ticks of 250 ms; a shared one is the earlier stage's"


@pytest.mark.parametrize(
    ("key", "size", "words"),
    [
        ("3", (200, 60), LONG),
        ("4", (200, 60), LONG),
        ("3", (80, 24), "stages are cut at 250 ms ticks"),
        ("4", (80, 24), LONG),
        ("3", (60, 24), "stage bounds ±250 ms"),
    ],
)
async def test_the_screens_that_compare_stages_say_how_exact_they_are(
    canned: ModuleType, dashboard: Callable[..., DashboardApp], key: str, size: tuple[int, int], words: str
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=size) as pilot:
        await pilot.press(key)
        panel = app.screen.query_one({"3": "#ttft", "4": "#sweep"}[key], Panel)
        assert words in str(titles_of(panel)[1])
