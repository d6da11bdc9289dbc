"""Trouble of a recording, as reported to viewers that do not own the run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.format.liveness import Writer
from servetop.run.process.recording_trouble import CHECK_SECONDS, RecordingTrouble
from servetop.run.process.registered_run import RegisteredRun
from servetop.run.process.run_registry import RunRegistry

FULL = "/data/run.servetop cannot be written (no space left on device): the run continues"


class HandMovedClock(MonotonicClock):
    """Stands still between the steps of a test."""

    at = 0.0

    def now(self) -> float:
        return self.at


def test_trouble_is_reported_once_and_again_when_it_returns(tmp_path: Path) -> None:
    process, registry, clock = Writer.this_process(), RunRegistry(tmp_path / "runs"), HandMovedClock()
    header = RunHeader(config=RunConfig(), anchor=ClockAnchor.take(), pid=process.pid)
    trouble = RecordingTrouble(header, registry=registry, clock=clock)
    run = RegisteredRun(
        id="k7fq", pid=process.pid, began=process.started, host=process.host, engine="sim", model="", label="",
        recording=Path("/data/run.servetop"), state="running",
    )  # fmt: skip

    def reported(words: str) -> list[str]:
        registry.write(dataclasses.replace(run, trouble=words))
        clock.at += CHECK_SECONDS
        return [note.text for note in trouble()]

    assert reported("") == []
    assert reported(FULL) == [FULL]
    assert reported(FULL) == []
    assert reported("") == []
    assert reported(FULL) == [FULL]
    registry.remove("k7fq")
    clock.at += CHECK_SECONDS
    assert trouble() == ()
