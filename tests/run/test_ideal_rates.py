"""The ideal hit rate of a dataset's prompts, noted at the end of a run and read by the summary."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from servetop.core.arrays import np
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.events import RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from servetop.run.exit_code import close_recording


def request(number: int, stage: int) -> RequestRecord:
    return RequestRecord(
        id=number, stage=stage, due=float(number), sent=float(number), first_token_at=number + 0.1,
        done_at=number + 0.2, prompt_tokens=100, output_tokens=1, status=RequestStatus.OK,
        chunk_times=np.array([number + 0.1]), chunk_tokens=np.array([1]),
    )  # fmt: skip


def stages(count: int) -> list[StageChange]:
    return [
        StageChange(at=10.0 * each, index=each, label="", request_rate=1.0, max_concurrency=None, max_num_seqs=None)
        for each in range(count)
    ]


def ideal(tmp_path: Path, *, rows: list[str], **config: Any) -> list[float | None]:
    """Record a run over these texts, ten requests in each of two stages; the ideal of the run and of each stage."""
    data = tmp_path / "texts.jsonl"
    data.write_text("\n".join(json.dumps({"prompt": text}) for text in rows))
    workload = WorkloadConfig(dataset="custom", dataset_path=str(data))
    header = RunHeader(
        config=RunConfig(workload=workload, **config),
        anchor=ClockAnchor.take(),
        engine=EngineFacts(name="vllm", title="vLLM", block_size=16),
    )
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    requests = [request(number, number // 10) for number in range(20)]
    recorder.commit(TickTransaction(tick=None, requests=requests, stages=stages(2)))
    close_recording(recorder, RunEnd(at=30.0, exit_code=0, reason=""), header.config)
    data.unlink()  # the summary does not need it
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        summary = run_summary(reader)
    parts = (summary.measured, *(stage.measured for stage in summary.stages))
    return [part.server.prefix_cache_ideal_hit_rate for part in parts]


def test_rows_that_come_again_are_found_in_all_but_the_last_block(tmp_path: Path) -> None:
    rows = [f"{number:03}" + "x" * 637 for number in range(10)]  # ten blocks of 64 characters
    assert ideal(tmp_path, rows=rows) == pytest.approx([0.45, 0.0, 0.9])


def test_a_cold_cell_finds_nothing_of_the_cell_before(tmp_path: Path) -> None:
    rows = [f"{number:03}" + "x" * 637 for number in range(10)]
    assert ideal(tmp_path, rows=rows, prefix_cache="cold", drain_at_stages=True) == [0.0, 0.0, 0.0]


def test_a_common_beginning_of_the_rows_is_found(tmp_path: Path) -> None:
    rows = ["s" * 320 + f"{number:03}" + "x" * 317 for number in range(20)]
    assert ideal(tmp_path, rows=rows) == pytest.approx([0.475, 0.45, 0.5])
