"""The progress of a headless sweep has the interval over starts of each cell that was repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.cli.headless.headless_progress import HeadlessProgress
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig, StageConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader, RunUpdate
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.analysis.sweep.test_repeat_means import updates

RESTARTED = ((1, 4), (2, 9), (3, 14))
"""The repeat before each restart, and its second."""
REPEATS = tuple(StageConfig(request_rate=4.0, num_prompts=8, repeat=repeat) for repeat in range(4))


def write(recorder: Recorder, update: RunUpdate) -> None:
    first, *others = update.ticks
    recorder.commit(TickTransaction(tick=first, stages=update.stages, notes=update.notes))
    for tick in others:
        recorder.commit(TickTransaction(tick=tick))


@pytest.mark.parametrize(
    ("sweep", "expected"), [(True, [[], [], ["420 ±254", "2 starts"], ["440 ±99", "3 starts"]]), (False, [[]] * 4)]
)
def test_a_line_follows_each_repeat_from_the_second_start_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sweep: bool, expected: list[list[str]]
) -> None:
    config = RunConfig(stages=REPEATS, drain_at_stages=sweep)
    recorder = Recorder.create(tmp_path / "run.servetop", RunHeader(config=config, anchor=ClockAnchor.take()))
    progress = HeadlessProgress(config, recorder.path)
    told, restarts = [], []
    for update in updates([400.0, 440.0, 480.0, 480.0]):
        write(recorder, update)
        progress.show()
        printed = capsys.readouterr().err.splitlines()
        restarts += [line for line in printed if "restarting" in line]
        lines = [line for line in printed if " tok/s over " in line]
        assert all(line.split("  ")[1].startswith("4 req/s: ") for line in lines)
        told.append([part for line in lines for part in line.partition("4 req/s: ")[2].split(" tok/s over ")])
    progress.close()
    recorder.close(RunEnd(at=20.0, exit_code=0, reason=""))
    assert told == expected
    assert restarts == [f"0:{at:02}  repeat {each} → {each + 1}: restarting the engine" for each, at in RESTARTED]
