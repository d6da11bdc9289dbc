"""A real GPU under twice the load that it can serve: Llama-2-7b on vLLM, random weights, an A100-40GB's KV blocks.

`make gpu-check`, or without a network `tests/gpu/run_offline.sh`. The Python that has vLLM is this one, or that of
SERVETOP_VLLM_PYTHON. One run is made; what it left (recording, summary, messages, the load and how it was derived)
is written to SERVETOP_GPU_OUT, else OUT, else gpu-check/, and stays there, before the first test looks at it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.gpu.conftest import TIME_LIMIT
from tests.gpu.derived_load import A100_BLOCKS, SECONDS, TOKENS, DerivedLoad
from tests.harness import RAN, Finished

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(TIME_LIMIT + 30)]


@dataclass(frozen=True)
class Checked:
    """The one run that all tests look at."""

    done: Finished
    recording: Path


@pytest.fixture(scope="module")
def checked(load: DerivedLoad, serve: Callable[..., Finished], kept: Path) -> Checked:
    """Run once, and keep everything before anything is asserted."""
    (kept / "load.json").write_text(json.dumps(dataclasses.asdict(load)) + "\n", encoding="utf-8")
    done = serve(
        "gpu", "--request-rate", f"{load.request_rate:g}", "--burstiness", "inf", "--duration", f"{SECONDS:g}",
        "--input-len", str(TOKENS), "--output-len", str(TOKENS),
    )  # fmt: skip
    return Checked(done, kept / "gpu.servetop")


def test_the_command_ends_well(checked: Checked) -> None:
    assert checked.done.code in RAN, checked.done.err


def test_the_recording_holds_every_request_that_the_summary_counts(checked: Checked) -> None:
    count = RecordingReader.open(checked.recording).request_count()
    assert count >= checked.done.summary["num_prompts"] > 0


def test_no_request_fails(checked: Checked) -> None:
    assert checked.done.summary["failed"] == 0


def test_the_kv_cache_is_the_a100s_without_its_null_block(checked: Checked) -> None:
    facts = RecordingReader.open(checked.recording).header.engine
    assert facts is not None
    assert (facts.kv_blocks_total, facts.block_size) == (A100_BLOCKS - 1, 16)


def test_vllm_counted_the_tokens_that_the_client_counted(checked: Checked) -> None:
    assert checked.done.summary["server"]["generation_tokens"] == checked.done.summary["total_output_tokens"]


def test_twice_the_capacity_preempts(checked: Checked) -> None:
    assert checked.done.summary["server"]["preemptions"] > 0


def test_the_gpu_is_read_while_it_works(checked: Checked) -> None:
    readings = RecordingReader.open(checked.recording).gpu_samples()
    assert max(each.utilisation or 0.0 for each in readings) > 0.5


def test_the_gpus_energy_is_in_the_summary(checked: Checked) -> None:
    assert (checked.done.summary["energy"]["joules"] or 0.0) > 0
