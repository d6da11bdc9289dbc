"""Runs started from Python: their progress, and how they end from outside."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from servetop import api
from servetop.analysis.live_stats import LiveStats
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import RecordingError

BRIEF = RunConfig(
    engine=EngineConfig(name="sim"),
    workload=WorkloadConfig(input_len=8, output_len=4),
    stages=(StageConfig(request_rate=50, num_prompts=10),),
)
ENDLESS = RunConfig(
    engine=EngineConfig(name="sim"),
    workload=WorkloadConfig(input_len=8, output_len=4),
    stages=(StageConfig(request_rate=5, duration=3600),),
)


class Stopped(Exception):
    """Raised by a progress function."""


def stop_after_a_request(state: LiveStats) -> None:
    if state.totals.completed:
        raise Stopped


def test_progress_is_reported_to_the_end_on_the_thread_of_the_caller(tmp_path: Path) -> None:
    seen: list[LiveStats] = []
    threads: set[int] = set()

    def progress(state: LiveStats) -> None:
        seen.append(state)
        threads.add(threading.get_ident())

    api.run(BRIEF, tmp_path / "run.servetop", progress=progress)
    assert seen[-1].totals.completed == 10
    assert threads == {threading.get_ident()}


def test_what_progress_raises_ends_the_run_and_leaves_a_complete_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    with pytest.raises(Stopped):
        api.run(ENDLESS, path, progress=stop_after_a_request)
    with api.open_recording(path) as recording:
        assert recording.reader.end is not None
        assert len(recording.requests()) >= 1


def test_a_coroutine_may_run_a_load_while_others_progress(tmp_path: Path) -> None:
    seen: list[LiveStats] = []

    async def both() -> tuple[api.RunResult, int]:
        counted = 0

        async def count() -> None:
            nonlocal counted
            while True:
                await asyncio.sleep(0.01)
                counted += 1

        beside = asyncio.create_task(count())
        result = await api.run_async(BRIEF, tmp_path / "run.servetop", progress=seen.append)
        beside.cancel()
        return result, counted

    result, counted = asyncio.run(both())
    assert (result.exit_code, result.summary.requests.completed) == (0, 10)
    assert counted > 1
    assert seen[-1].totals.completed == 10


def test_a_run_within_a_running_event_loop_is_possible(tmp_path: Path) -> None:
    async def cell_of_a_notebook() -> api.RunResult:
        return api.run(BRIEF, tmp_path / "run.servetop")

    assert asyncio.run(cell_of_a_notebook()).summary.requests.completed == 10


def test_a_cancelled_task_cancels_its_run(tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"

    async def cancel_after_a_request() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(api.run_async(ENDLESS, path, progress=lambda state: begun_if(state, begun)))
        waiting = asyncio.create_task(begun.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        assert begun.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_after_a_request())
    with api.open_recording(path) as recording:
        assert recording.reader.end is not None


def begun_if(state: LiveStats, begun: asyncio.Event) -> None:
    if state.totals.completed:
        begun.set()


def test_a_file_that_cannot_be_made_is_an_error_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match="cannot record"):
        api.run(BRIEF, tmp_path / "file" / "run.servetop")
