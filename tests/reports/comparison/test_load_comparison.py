"""Which recordings an argument of a comparison names."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.core.config import StageConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.reports.comparison.load_comparison import (
    distinct_arms,
    first_objectives,
    headers_of,
    load_measured_run,
    recordings_named,
)
from tests.judgement.brief_recordings import record_briefly


def files(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.write_bytes(b"")
    return paths


def test_an_argument_is_a_file_a_list_or_a_folder(tmp_path: Path) -> None:
    first, second, _ = files(tmp_path, "a,1.servetop", "b.servetop", "notes.txt")
    assert recordings_named(str(first)) == (first,), "a comma of a file's own name"
    third = files(tmp_path, "c.servetop")[0]
    assert recordings_named(f"{second}, {third}") == (second, third)
    assert recordings_named(str(tmp_path)) == (first, second, third)


def test_an_empty_folder_an_empty_list_and_an_unknown_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recording in"):
        recordings_named(str(tmp_path))
    with pytest.raises(UsageError, match="names no recording"):
        recordings_named(" , ")
    with pytest.raises(RecordingError, match="no such recording: absent"):
        recordings_named("absent")


def test_a_recording_may_occur_once(tmp_path: Path) -> None:
    first, second = files(tmp_path, "a.servetop", "b.servetop")
    assert distinct_arms([str(first), str(second)]) == [(first,), (second,)]
    with pytest.raises(UsageError, match="is given twice"):
        distinct_arms([str(second), f"{first},{second}"])


def test_a_run_is_loaded_with_its_counts_and_the_objectives_of_another(tmp_path: Path) -> None:
    stages = (StageConfig(request_rate=10.0, duration=2.0, warmup=True), StageConfig(request_rate=20.0, duration=4.0))
    path = record_briefly(tmp_path / "run.servetop", *stages)
    strict = record_briefly(tmp_path / "strict.servetop", *stages, goodput={"ttft": 1e-9})
    assert first_objectives(header for arm in headers_of([[path], [strict]]) for header in arm) == {"ttft": 1e-9}
    run = load_measured_run(path, objectives={"ttft": 1e-9})
    (stage,) = run.arm.stages
    assert stage.good is not None
    assert not stage.good.any()
    found = run.conditions
    assert (found.requests, found.completed, found.failed) == (stage.number.size, stage.number.size, 0)
    assert (run.name, run.running, run.damage) == ("run", False, None)
    assert run.end is not None
    assert load_measured_run(path).arm.stages[0].good is None
