"""Commands to a run, through the recording, as the dashboard sends them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from servetop.core.clock import ManualClock
from servetop.core.config import StageConfig
from servetop.core.events import Action, Command, StageChange
from servetop.core.interfaces.search_state import SEARCH_REFUSES
from servetop.recordings.read.reader import RecordingReader
from servetop.run.search.search_setup import SearchSetup
from servetop.tui.options import DashboardOptions
from servetop.tui.run_viewer import RunViewer
from servetop.tui.steering import Steering
from tests.harness import RAN, Servetop, opened, received, wait_for

pytestmark = pytest.mark.integration

RATES = [StageConfig(request_rate=rate, duration=9.0) for rate in (4.0, 8.0, 16.0)]


def reply_to(reader: RecordingReader, action: Action, value: float | None = None) -> str:
    """The reply to a command."""
    reader.send(action, value=value)
    replies: list[Command] = []

    def replied() -> str | None:
        replies.extend(command for command in reader.poll().commands if command.action is action)
        return next((each.reply for each in replies if each.reply), None)

    return wait_for(replied, seconds=15, what=f"a reply to {action}")


def began(reader: RecordingReader, index: int) -> StageChange:
    def change() -> StageChange | None:
        return next((stage for stage in reader.stages() if stage.index == index), None)

    return wait_for(change, seconds=15, what=f"stage {index}")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_goes_back_a_stage_switches_its_loop_and_stops(servetop: Servetop, tmp_path: Path, workers: str) -> None:
    recording = tmp_path / "run.servetop"
    load = ("--ramp", "8:60s,16:60s", "--output-len", "16", "--workers", workers)
    with servetop.started("--headless", *load, "--record", str(recording)) as process:
        reader = wait_for(lambda: opened(recording), seconds=15, what="the recording")
        wait_for(lambda: received(reader), seconds=30, what="the first tokens")
        assert reply_to(reader, Action.PREVIOUS_STAGE) == "this is the first stage"
        assert reply_to(reader, Action.NEXT_STAGE) == "stage ended, 1 remaining"
        assert began(reader, 1).request_rate == 16.0
        assert reply_to(reader, Action.PREVIOUS_STAGE).startswith("back to 8 req/s")
        assert began(reader, 2).request_rate == 8.0
        assert reply_to(reader, Action.CLOSE_LOOP, 4).startswith("closed loop: 4 concurrent requests")
        wait_for(lambda: reader.ticks()[-1].client.gauges.in_flight == 4, seconds=10, what="four in flight")
        assert reply_to(reader, Action.OPEN_LOOP, 6.0).startswith("open loop: sending 6 requests/s")
        wait_for(lambda: reader.ticks()[-1].client.gauges.request_rate == 6.0, seconds=10, what="the open loop")
        reply_to(reader, Action.STOP)
        process.communicate(timeout=120)
        assert process.returncode in RAN
        reader.close()


def test_a_load_is_handed_to_a_search_taken_back_and_searched_on(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    load = ("--request-rate", "8", "--duration", "600", "--output-len", "16", "--goodput", "ttft:500")
    with servetop.started("--headless", *load, "--json", "--record", str(recording)) as process:
        reader = wait_for(lambda: opened(recording), seconds=15, what="the recording")
        wait_for(lambda: received(reader), seconds=30, what="the first tokens")
        assert reply_to(reader, Action.SEARCH) == "the search chooses the load"
        first = began(reader, 1)
        assert first.request_rate == 4.0
        wait_for(lambda: reader.ticks()[-1].end > first.at + 1.0, seconds=15, what="a second of the first load")
        assert reply_to(reader, Action.SET_RATE, 3.0) == SEARCH_REFUSES
        assert reply_to(reader, Action.SEARCH) == "the load is yours: it stays as it is"
        assert reply_to(reader, Action.SET_RATE, 3.0).startswith("sending 3 requests/s")
        assert reply_to(reader, Action.SEARCH) == "the search chooses the load"
        assert began(reader, 2).index == 2
        reply_to(reader, Action.STOP)
        out, err = process.communicate(timeout=120)
        assert process.returncode in RAN, err
    reader.close()
    assert json.loads(out)["completed"] > 0, "as JSON it is the summary of the run"
    with contextlib.closing(RecordingReader.open(recording)) as whole:
        evidence = SearchSetup.of(whole.header.config).evidence(whole)
    assert evidence.probes[0].load == 4.0
    shown = servetop("summary", str(recording)).out
    assert shown.startswith("answer     the load of servetop simulator with llama-2-7b within goodput")
    assert "Request throughput" in shown


def test_each_batch_size_key_steps_from_the_size_in_force(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    with servetop.started("--headless", "--ramp", "4:60s", "--record", str(recording)):
        reader = wait_for(lambda: opened(recording), seconds=15, what="the recording")
        wait_for(lambda: received(reader), seconds=30, what="the first tokens")
        viewer = RunViewer(DashboardOptions(), ManualClock(), redraw=lambda: None, call_later=lambda *_: None)
        viewer.open(reader)
        steering = Steering(viewer, ask=lambda *_: None)

        def exported() -> float | None:
            viewer.read_updates()
            sample = viewer.run.history.ticks[-1].engine
            return sample.max_num_seqs if sample else None

        for _ in range(3):
            steering.step_batch_size(1)
        wait_for(lambda: exported() == 512, seconds=15, what="256 → 320 → 384 → 512")
        for size in (384.0, 320.0, 256.0):  # the next key may come before the next sample
            steering.step_batch_size(-1)
            wait_for(lambda: viewer.read_updates() and not viewer.run.requested, seconds=15, what=f"batch size {size}")
            assert viewer.run.target.max_num_seqs == size
        wait_for(lambda: exported() == 256, seconds=15, what="the first size again")
        replies = [command.reply for command in viewer.run.commands.values()]
        assert replies == [f"batch size {size}" for size in (320, 384, 512, 384, 320, 256)]
        reader.close()
