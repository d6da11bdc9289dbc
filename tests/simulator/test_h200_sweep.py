"""The simulator against a sweep of vLLM 0.22.1 with Llama-2-7b on an NVIDIA H200 (128 tokens in, 128 out, Poisson)."""

from __future__ import annotations

import contextlib
import lzma
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.config import StageConfig
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.reports.summary.summary import run_summary
from servetop.simulator.predict.predict import PredictSpec, predict

RECORDING = Path(__file__).parents[1] / "golden" / "h200_sweep.servetop.xz"
KV_BLOCKS = 2882


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The measurements: batch sizes of 64, 128 and 256 by 16, 32 and 64 requests/s, 20 s each."""
    path = tmp_path_factory.mktemp("h200") / "sweep.servetop"
    path.write_bytes(lzma.decompress(RECORDING.read_bytes()))
    assert verify(path).verdict is VerifyVerdict.SOUND
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages: list[dict[str, Any]] = summary_json(run_summary(reader))["stages"]
    return stages


def test_the_sweep_lost_no_request_and_is_trusted(cells: list[dict[str, Any]]) -> None:
    assert [(cell["max_num_seqs"], cell["request_rate"]) for cell in cells] == [
        (batch, rate) for batch in (64, 128, 256) for rate in (16, 32, 64)
    ]
    assert {cell["trust"]["verdict"] for cell in cells} == {"ok"}
    assert sum(cell["failed"] for cell in cells) == 0


def test_the_throughput_of_a_full_batch_is_predicted_within_5_percent(cells: list[dict[str, Any]]) -> None:
    (full,) = (cell for cell in cells if (cell["max_num_seqs"], cell["request_rate"]) == (64, 64))
    spec = PredictSpec(
        gpu="h200",
        engine_profile="vllm-current",
        stages=(StageConfig(max_num_seqs=64, request_rate=64.0, num_prompts=full["num_prompts"]),),
        settings={"kv_blocks": KV_BLOCKS},
    )
    (cell,) = predict(spec).cells
    assert cell.require_result().output_throughput == pytest.approx(full["output_throughput"], rel=0.05)
