"""The manifest reaches the recording while the run goes on, and without secrets."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.engines.handle import LaunchedServer
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.run.manifest import manifest_recorder
from servetop.run.manifest.manifest_recorder import ManifestRecorder

SERVER = LaunchedServer(
    argv=("vllm", "serve", "m", "--port", "8123", "--hf-token", "hf_secretsecret1"),
    environment={"VLLM_API_KEY": "sk-secretsecret2", "VLLM_USE_V1": "1", "HOME": "/root"},
    port=8123,
)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    header = RunHeader(config=RunConfig(), anchor=ClockAnchor(origin_ns=0, wall_epoch_s=1.7e9))
    opened = Recorder.create(tmp_path / "run.servetop", header)
    yield opened
    opened.close(RunEnd(at=1.0, exit_code=0, reason=""))


def recorded(recorder: Recorder) -> dict[str, Any]:
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        return dict(reader.header.manifest)


async def test_the_engine_is_recorded_when_it_is_ready_although_details_are_still_read(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def slow(*_: object) -> Iterator[tuple[str, dict[str, Any]]]:
        released.wait(10)
        yield "gpu", {"driver": "550"}

    monkeypatch.setattr(manifest_recorder, "machine_details", slow)
    monkeypatch.setattr(manifest_recorder, "TICK_SECONDS", 0.001)
    command_line = ["servetop", "--url", "http://me:hunter2222@gpu7:8000", "--header", "X-Api-Key: plantedkey77"]
    started: list[LaunchedServer] = []
    manifest = ManifestRecorder(
        RunConfig(), recorder, engine=lambda: started[0] if started else None, command_line=command_line
    )
    following = asyncio.ensure_future(manifest.follow())
    started.append(SERVER)
    async with asyncio.timeout(10):
        while "engine" not in recorded(recorder):
            await asyncio.sleep(0.001)
    assert "gpu" not in recorded(recorder)
    released.set()
    async with asyncio.timeout(10):
        await following
    found = recorded(recorder)
    assert found["gpu"] == {"driver": "550"}
    assert found["engine"]["argv"] == ["vllm", "serve", "m", "--port", "{port}", "--hf-token", "[redacted]"]
    assert found["engine"]["environment"] == {"VLLM_API_KEY": "[redacted]", "VLLM_USE_V1": "1"}
    assert found["command_line"] == [
        "servetop", "--url", "http://[redacted]@gpu7:8000", "--header", "X-Api-Key: [redacted]",
    ]  # fmt: skip


async def test_a_run_that_ends_at_once_has_its_manifest_too(recorder: Recorder) -> None:
    manifest = ManifestRecorder(RunConfig(), recorder, engine=lambda: SERVER, command_line=())
    following = asyncio.ensure_future(manifest.follow())
    await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await manifest.finish()
    assert set(recorded(recorder)) >= {"engine", "host"}
