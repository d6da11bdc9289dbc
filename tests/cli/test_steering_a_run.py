"""Commands to a run, through the recording, as the dashboard sends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import Action, Command, StageChange
from servetop.recordings.read.reader import RecordingReader
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
