"""Long live runs: old ticks leave the memory and are read again when they are shown."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from servetop.analysis.series import paged_columns
from servetop.core.errors import RecordingError
from servetop.core.events import ReplicaSample
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.tui import run_viewer
from servetop.tui.app import DashboardApp
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.run_state import RunState
from servetop.tui.state.scratch_file import ScratchFile
from tests.tui import canned

END = 120.0
GROWTH = 64
"""Bytes per tick: its index entry, and the events of a canned run."""


def followed(*, keep: int | None) -> RunState:
    """The canned run, folded second by second; `keep` ticks stay in memory, None keeps all."""
    run = canned.growing(0.0)
    options: dict[str, Any] = {} if keep is None else {"read": run.past_ticks, "keep": keep}
    state = RunState(run.header, **options)
    for second in range(1, round(END) + 1):
        run.now = float(second)
        state.fold(run.poll())
    return state


def figures(frame: Frame) -> dict[str, Any]:
    stages = [(each.output_rate, each.preemptions, *each.histograms.values()) for each in frame.per_stage()]
    return {
        "heat": list(frame.heat),
        "stages": stages,
        "steady": dict(frame.steady),
        "causes": frame.episodes,
        "overview": frame.overview,
        "latencies": dict(frame.stats.series.latencies),
        "trust": frame.stats.trust,
        "gpus": frame.stats.gpus,
        "ttft": frame.stats.ttft,
    }


@pytest.mark.parametrize("at", [20.0, 61.3, END])
@pytest.mark.parametrize("span", [30.0, 0.0])
def test_every_time_is_shown_as_if_all_ticks_were_in_memory(at: float, span: float) -> None:
    whole, short = followed(keep=None), followed(keep=100)
    view = View(playhead=Playhead(at=at), span=span)
    assert short.history.ticks.evicted > 300
    np.testing.assert_equal(figures(short.at(view, live=True)), figures(whole.at(view, live=True)))


async def test_ticks_that_cannot_be_read_again_are_reported(dashboard: Any) -> None:
    run = canned.growing(110.0)
    app: DashboardApp = dashboard(run)

    def fails(first: int, last: int) -> Any:
        raise RecordingError("cannot read run.servetop: is the disk all right?")

    async with app.run_test(size=(160, 48)) as pilot:
        app.viewer.run.history.evict(keep=100)
        run.past_ticks = fails  # type: ignore[method-assign]
        app.viewer.update_view(playhead=replace(app.viewer.view.playhead, at=30.0, playing=False))
        await pilot.pause()
        assert "is the disk all right" in app.viewer.view.message
        assert app.viewer.run.at(app.viewer.view, live=True).stats.totals.sent > 0


LOADED = canned.growing(END).ticks[100:]


def endless(number: int) -> Tick:
    """A tick of a run that repeats the canned run's load."""
    tick = LOADED[number % len(LOADED)]
    at = (number + 1) * TICK_SECONDS
    engine = replace(tick.engine, scrape_start=at - 0.02, scrape_end=at - 0.01) if tick.engine else None
    return replace(tick, client=replace(tick.client, index=number), engine=engine)


def caught(replica: int, at: float) -> ReplicaSample:
    return ReplicaSample(replica=replica, scrape_start=at - 0.01, scrape_end=at, running=1.5, waiting=0.5)


def growth_of_a_long_run() -> int:
    """Bytes that 1024 ticks add to a live run which has settled; for a process of its own."""

    def nothing_again(first: int, last: int) -> Sequence[Tick]:
        raise AssertionError(f"ticks {first} to {last} were read again, although no view shows them")

    paged_columns.PAGE = 128
    run = RunState(canned.growing(0.0).header, read=nothing_again, keep=500, scratch=ScratchFile())

    def follow(first: int, last: int) -> int:
        for start in range(first, last, 8):
            ticks = [endless(number) for number in range(start, start + 8)]
            samples = [caught(each, tick.end) for tick in ticks for each in range(2)]
            run.fold(RunUpdate(ticks=ticks, replica_samples=samples))
            if start % 32 == 0:
                run.at(View(playhead=Playhead(at=ticks[-1].end), span=30.0), live=True)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    settled = follow(0, 1024)
    return follow(1024, 2048) - settled


def test_a_long_live_run_needs_constant_memory() -> None:
    """In a process of its own: what other tests leave behind allocates memory too."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(growth_of_a_long_run).result() < 1024 * GROWTH


def test_a_long_recording_is_read_in_parts(dashboard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = canned.growing(END)
    whole: DashboardApp = dashboard(run)
    held: list[int] = []
    fold = RunState.fold

    def folding(self: RunState, update: RunUpdate) -> bool:
        held.append(len(self.history.ticks) - self.history.ticks.evicted + len(update.ticks))
        return fold(self, update)

    monkeypatch.setattr(run_viewer, "MOST_TICKS", 50)
    monkeypatch.setattr(run_viewer, "LIVE_TICKS", 100)
    monkeypatch.setattr(RunState, "fold", folding)
    pieces: DashboardApp = dashboard(canned.growing(END))
    assert max(held) < 200
    assert len(pieces.viewer.run.history) == len(whole.viewer.run.history) > 400
    np.testing.assert_equal(figures(pieces.viewer.frame()), figures(whole.viewer.frame()))


def test_pieces_that_a_full_disk_rejects_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = ScratchFile()
    places = [scratch.add(b"first")]

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("os.pwrite", full)
        places.append(scratch.add(b"second"))
    places.append(scratch.add(b"third"))
    assert [scratch.read(at, size) for at, size in zip(places, (5, 6, 5), strict=True)] == [
        b"first",
        b"second",
        b"third",
    ]


def test_a_scratch_that_ends_in_a_cycle_leaves_no_file_open() -> None:
    scratch = ScratchFile()
    scratch.add(b"a piece")
    file = scratch._file
    assert file is not None
    cycle: list[object] = [scratch]
    cycle.append(cycle)
    del scratch, cycle
    gc.collect()
    assert file.closed


def test_a_recording_is_judged_after_its_first_frame_except_for_ticks_that_leave_the_memory() -> None:
    run = canned.growing(END)
    state = RunState(run.header, read=run.past_ticks, keep=200)
    update = run.poll()
    state.fold(replace(update, ticks=update.ticks[:300], more=True))
    assert not state.judged.complete
    before = state.judged.judged
    state.fold(replace(update, ticks=update.ticks[300:]))
    assert (before, state.judged.judged) == (100, len(update.ticks))
    assert state.judged.complete
