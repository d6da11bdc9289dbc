"""Only the recording of a run that never attached to its server is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.errors import ExitCode
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.recordings.library.empty_recordings import is_empty, remove_empty
from servetop.recordings.write.recorder import Recorder

FACTS = EngineFacts(name="vllm", title="vLLM", model="m", url="http://gpu7:8000")


@pytest.mark.parametrize(
    ("url", "attached", "ended", "removed"),
    [
        ("http://gpu7:8000", False, True, True),
        ("http://gpu7:8000", False, False, False),
        ("http://gpu7:8000", True, True, False),
        (None, False, True, False),  # its log says why the engine did not start
    ],
)
def test_a_recording_is_removed_if_its_run_ended_before_it_attached(
    tmp_path: Path, url: str | None, attached: bool, ended: bool, removed: bool
) -> None:
    path = tmp_path / "run.servetop"
    config = RunConfig(engine=EngineConfig(name="auto", url=url))
    recorder = Recorder.create(path, RunHeader(config=config, anchor=ClockAnchor.take()))
    if attached:
        recorder.set_engine(FACTS)
    if ended:
        recorder.close(RunEnd(at=0.5, exit_code=int(ExitCode.ENGINE_FAILED), reason="nothing answers"))
    assert is_empty(path) is removed
    remove_empty(path)
    assert path.exists() is not removed
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))


def test_a_file_that_is_no_recording_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.servetop"
    path.write_text("not a recording")
    remove_empty(path)
    remove_empty(tmp_path / "missing.servetop")
    assert path.exists()
