"""The studies' machine, as near as can be: Llama-2-7b on vLLM and a real GPU, with an A100-40GB's KV blocks.

`make gpu-check`; the Python that has vLLM is this one, or that of SERVETOP_VLLM_PYTHON. The recording is kept where
SERVETOP_GPU_RECORDING says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from servetop.core.clock import MonotonicClock
from servetop.engines.gpu_nvidia import open_nvml
from servetop.recordings.reader import RecordingReader
from tests.harness import RAN, Servetop

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

MAKE_MODEL = Path(__file__).with_name("make_model.py")
A100_BLOCKS = 2883
"""KV blocks of 16 tokens that Llama-2-7b leaves on an A100-40GB."""
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
FLAGS = (
    "--load-format", "dummy", "--dtype", "float16", "--block-size", "16", "--num-gpu-blocks-override", str(A100_BLOCKS),
    "--no-enable-prefix-caching",
)  # fmt: skip


@pytest.fixture(scope="module")
def python() -> str:
    """A Python that has vLLM, on a machine that has a GPU; else this is skipped, and says why."""
    reader = open_nvml()
    if reader is None or not reader(MonotonicClock().now()):
        pytest.skip("no NVIDIA GPU can be read here: nothing was checked")
    chosen = os.environ.get("SERVETOP_VLLM_PYTHON", sys.executable)
    if subprocess.run([chosen, "-c", "import vllm"], capture_output=True, check=False).returncode:
        pytest.skip(f"{chosen} has no vLLM: name one that has with SERVETOP_VLLM_PYTHON; nothing was checked")
    return chosen


def test_llama_2_7b_preempts_as_in_the_studies_and_the_gpu_is_told(python: str, tmp_path: Path) -> None:
    model, recording = tmp_path / "llama-2-7b", tmp_path / "gpu.servetop"
    subprocess.run([python, str(MAKE_MODEL), str(model)], check=True)
    done = Servetop(tmp_path, QUIET)(
        "--engine", "vllm", "--engine-command", f"{python} -m vllm.entrypoints.openai.api_server",
        "--model", str(model), "--max-num-seqs", "256", "--request-rate", "64", "--burstiness", "inf",
        "--input-len", "128", "--output-len", "128", "--num-warmups", "8", "--duration", "30",
        "--record", str(recording), "--json", "--", *FLAGS,
        timeout=840,
    )  # fmt: skip
    assert done.code in RAN, done.err
    summary, reader = done.summary, RecordingReader.open(recording)
    facts = reader.header.engine
    assert facts is not None
    assert (facts.kv_blocks_total, facts.block_size) == (A100_BLOCKS - 1, 16)  # one is the null block
    assert summary["failed"] == 0
    assert summary["server"]["generation_tokens"] == summary["total_output_tokens"]
    assert summary["server"]["preemptions"] > 0
    assert summary["energy"]["joules"] > 0
    kept = os.environ.get("SERVETOP_GPU_RECORDING")
    if kept:
        shutil.copy(recording, kept)
