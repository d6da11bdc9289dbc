"""Fixtures for recordings: runs from plain numbers, written to real files."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.events import EngineSample, GpuSample, RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary

PROGRAMS = Path(__file__).parent / "programs"
START_PROGRAM = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def header() -> RunHeader:
    config = RunConfig(engine=EngineConfig(name="sim", model="llama-2-7b"), label="test")
    return RunHeader(config=config, anchor=ClockAnchor(origin_ns=1_000, wall_epoch_s=1_700_000_000.0))


@pytest.fixture
def make_request() -> Callable[..., RequestRecord]:
    """A request due at `due`, sent `slip` later, with a token at each of `tokens_at` seconds after it was sent."""

    def make(
        number: int, due: float, *, tokens_at: Sequence[float] = (0.1, 0.2), slip: float = 0.0, **fields: Any
    ) -> RequestRecord:
        sent = due + slip
        times = sent + np.array(tokens_at, dtype=np.float64)
        tokens = np.array(fields.pop("chunk_tokens", [1] * len(tokens_at)), dtype=np.int64)
        values: dict[str, Any] = {
            "stage": 0,
            "sent": sent,
            "headers_at": sent + 0.01,
            "first_token_at": float(times[0]) if times.size else None,
            "done_at": float(times[-1]) if times.size else None,
            "prompt_tokens": 10,
            "output_tokens": int(tokens.sum()),
            "status": RequestStatus.OK,
        }
        return RequestRecord(id=number, due=due, chunk_times=times, chunk_tokens=tokens, **(values | fields))

    return make


@pytest.fixture
def make_tick() -> Callable[..., Tick]:
    """Tick number `index` with some client fields set; gauges such as `in_flight` are set in its gauges."""

    def make(index: int, *, engine: EngineSample | None = None, ttfts: Sequence[float] = (), **fields: Any) -> Tick:
        gauge_names = {each.name for each in dataclasses.fields(LoadGauges)}
        gauges = LoadGauges(**{name: fields.pop(name) for name in list(fields) if name in gauge_names})
        client = ClientTick(index=index, gauges=gauges, ttft=LogHistogram.of(ttfts), **fields)
        return Tick(client=client, engine=engine)

    return make


@pytest.fixture
def recorder(tmp_path: Path, header: RunHeader) -> Iterator[Recorder]:
    started = Recorder.create(tmp_path / "run.servetop", header)
    yield started
    started.close(RunEnd(at=0.0, exit_code=0, reason=""))


@pytest.fixture
def reader(recorder: Recorder) -> Iterator[RecordingReader]:
    """A reader of the file that `recorder` writes."""
    opened = RecordingReader.open(recorder.path)
    yield opened
    opened.close()


@pytest.fixture
def summary_of(tmp_path: Path, header: RunHeader) -> Callable[..., dict[str, Any]]:
    """Record these events, close the file, and return the summary of the run."""

    def summary(
        *requests: RequestRecord,
        ticks: Sequence[Tick] = (),
        samples: Sequence[EngineSample] = (),
        stages: Sequence[StageChange] = (),
        gpus: Sequence[GpuSample] = (),
        config: RunConfig | None = None,
    ) -> dict[str, Any]:
        recorder = Recorder.create(
            tmp_path / "run.servetop", dataclasses.replace(header, config=config or header.config)
        )
        recorder.commit(TickTransaction(requests=requests, engine_samples=samples, stages=stages, gpu_samples=gpus))
        for tick in ticks:
            recorder.commit(TickTransaction(tick=tick))
        recorder.close(RunEnd(at=20.0, exit_code=0, reason=""))
        with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
            result = summary_json(run_summary(reader))
        json.dumps(result, allow_nan=False)
        return result

    return summary


@pytest.fixture
def same() -> Callable[[Any, Any], bool]:
    """Whether two events with arrays are equal; chunk times may differ by the file's resolution of a microsecond."""

    def equal(left: Any, right: Any) -> bool:
        if isinstance(left, LogHistogram):
            return bool(left == right) and left.total == right.total
        if dataclasses.is_dataclass(left):
            names = [each.name for each in dataclasses.fields(left)]
            return all(equal(getattr(left, name), getattr(right, name)) for name in names)
        if isinstance(left, np.ndarray):
            tolerance = 1e-6 if left.dtype.kind == "f" else 0
            return left.shape == right.shape and np.allclose(left, right, rtol=1e-12, atol=tolerance)
        alike: bool = type(left) is type(right) and left == right
        return alike

    return equal


@pytest.fixture
def start_program() -> Iterator[START_PROGRAM]:
    """Start one of `programs/` with arguments; it is killed at the end of the test if still running."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / name), *map(str, arguments)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
