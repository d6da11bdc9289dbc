"""The states of a watched server over time: what an episode is said to be agrees with the gauges, and the summary."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.fleet.server_episodes import EpisodeChange, ServerEpisodes
from servetop.core.clock import ClockAnchor
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.watch_summary import watch_summary
from servetop.run.watch.watched_rows import WatchedRows
from tests.analysis.test_watched_signals import FACTS, queue_between
from tests.recorded_watches import ONE
from tests.watched_pages import paged_ticks

POLL = 2
"""Ticks between two looks at the recording."""


def followed(path: Path, begin: float, end: float) -> tuple[list[EpisodeChange], list[str]]:
    """Watch a queue between two times for a minute: what changes, and the state with its evidence at each look."""
    recorder = Recorder.create(path, RunHeader(config=ONE, anchor=ClockAnchor.take()))
    recorder.set_engine(replace(FACTS, url="http://gpu7:8000", model="tiny"))
    rows, episodes, changes, states = WatchedRows(path), ServerEpisodes(), [], []
    ticks = paged_ticks(every=1.0, seconds=60.0, gauges=queue_between(begin, end))
    for tick in ticks:
        samples = [] if tick.engine is None else [tick.engine]
        recorder.commit(TickTransaction(tick=tick, engine_samples=samples))
        if tick.client.index % POLL == 0 and (new := rows.new()) is not None:
            changes += episodes.changes(new[1], new[0])
            states += [f"{row.state}: {row.detail}" for row in new[1]]
    rows.close()
    recorder.close(RunEnd(at=ticks[-1].end, exit_code=0, reason=""))
    return changes, states


@pytest.mark.parametrize(("end", "seconds"), [(26.0, "0:06"), (30.0, "0:10"), (43.0, "0:23")])
def test_an_overload_lasts_as_long_as_in_the_summary(end: float, seconds: str, tmp_path: Path) -> None:
    path = tmp_path / "watch.servetop"
    (begun, ended), _ = followed(path, 20.0, end)
    assert (begun.begins, ended.begins) == (True, False)
    assert "batch-bound: running 16 of 16, 30 waiting" in begun.text, "the text is of a time in it"
    assert ended.text == f"gpu7:8000: batch-bound for {seconds}, now serving"
    with closing(RecordingReader.open(path)) as reader:
        assert watch_summary(reader).headline.startswith(f"batch-bound for {seconds} of")


@pytest.mark.parametrize("end", [23.0, 24.0, 30.0])
def test_no_state_contradicts_the_gauges_of_its_time(end: float, tmp_path: Path) -> None:
    changes, states = followed(tmp_path / "watch.servetop", 20.0, end)
    overloaded = [state for state in states if state.startswith(("batch-bound", "requests wait"))]
    assert all("30 waiting" in state for state in overloaded), overloaded
    assert all("30 waiting" in change.text for change in changes if change.begins)
