"""A virtual run can be recorded, and its recording holds the same ticks and events."""

from __future__ import annotations

from pathlib import Path

from servetop.core.config import StageConfig
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verify import verify
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.judgement.recordings import write_recording
from tests.simulator.virtual_run.runs import plan_of, total


def test_a_recorded_run_is_sound_and_holds_the_same_data(tmp_path: Path) -> None:
    outage = Outage(kind=OutageKind.HTTP_500, start=12.0, share=0.3)
    stages = (StageConfig(request_rate=5.0, duration=5.0, warmup=True), StageConfig(request_rate=15.0, duration=10.0))
    run = run_virtually(plan_of(*stages, kv_blocks=500, outages=(outage,)))
    path = tmp_path / "run.servetop"
    write_recording(run, path)
    reader = RecordingReader.open(path)
    update = reader.poll()
    assert [tick.client.output_tokens for tick in update.ticks] == [tick.client.output_tokens for tick in run.ticks]
    assert [tick.client.ttft for tick in update.ticks] == [tick.client.ttft for tick in run.ticks]
    assert [tick.engine for tick in update.ticks] == [tick.engine for tick in run.ticks]
    assert tuple(update.stages) == run.stages
    assert tuple(update.log_lines) == run.log_lines
    assert len(reader.requests(0.0, 100.0)) == total(run.ticks, "sent")
    assert reader.header.engine == run.header.engine
    reader.close()
    assert [check for check in verify(path).checks if not check.sound] == []


def test_a_recorded_run_of_replicas_holds_the_samples_of_each_and_of_their_gpus(tmp_path: Path) -> None:
    run = run_virtually(
        plan_of(StageConfig(request_rate=4.0, duration=3.0), plan={"replicas": 2, "gpus": GpuTelemetry()})
    )
    path = tmp_path / "run.servetop"
    write_recording(run, path)
    reader = RecordingReader.open(path)
    assert tuple(reader.replica_samples()) == run.replica_samples
    assert tuple(reader.gpu_samples()) == tuple(gpu for tick in run.ticks for gpu in tick.gpus)
    reader.close()
