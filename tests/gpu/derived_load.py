"""The load that overruns a card's KV cache, found with the simulator before anything is started.

What preempts an A100 is half of what an H200 serves with room to spare, so the rate follows from the card:
`servetop predict` gives the rate that it completes when everything arrives at once; twice that is offered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import GpuSample
from servetop.simulator.model.profile_files import load_gpu, profile_names
from servetop.simulator.predict.predict import PredictSpec, predict_cell
from servetop.simulator.predict.prediction import CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedLoad:
    """The load for one card, and its predicted results."""

    profile: str
    """The simulator's name of the card."""
    capacity: float
    """Requests/s that it completes."""
    request_rate: float
    preemptions: int
    """Predicted at `request_rate`, sent for `SECONDS`."""


BATCH, TOKENS, SECONDS = 256, 128, 30.0
"""Batch size, tokens of each prompt and each answer, and how long requests are sent."""
A100_BLOCKS = 2883
"""KV blocks of 16 tokens that Llama-2-7b leaves on an A100-40GB."""


def derived_load(devices: Sequence[GpuSample], *, kv_blocks: int) -> DerivedLoad | None:
    """The load for Llama-2-7b on the first device with `kv_blocks` blocks; None for a card without a profile."""
    profile = next((name for name in map(profile_of, devices[:1]) if name), None)
    if profile is None:
        return None
    # many batches, so that the start and the end of the run hardly count
    all_at_once = _predicted(profile, kv_blocks, rate=math.inf, count=2000)
    served = all_at_once.completed / all_at_once.duration
    rate = float(math.ceil(2 * served))
    overload = _predicted(profile, kv_blocks, rate=rate, count=round(rate * SECONDS))
    return DerivedLoad(profile=profile, capacity=served, request_rate=rate, preemptions=overload.preemptions)


def profile_of(device: GpuSample) -> str | None:
    """The profile with the card's name whose memory is the nearest; None where no name fits.

    `NVIDIA A100-SXM4-40GB` is `a100-40`: the first part of a profile's name is looked for among the words of the
    card's, and the memory distinguishes the sizes of one model.
    """
    words = re.findall(r"[a-z]+\d+[a-z]*|\d+", (device.name or "").lower().replace("rtx ", "rtx"))
    fitting = [name for name in profile_names("gpus") if name.split("-")[0] in words]
    total = device.memory_total or 0
    return min(fitting, key=lambda name: abs(load_gpu(name).memory_bytes - total), default=None)


def _predicted(profile: str, kv_blocks: int, *, rate: float, count: int) -> CellResult:
    spec = PredictSpec(
        model="llama-2-7b",
        gpu=profile,
        engine_profile="vllm-current",
        workload=WorkloadConfig(input_len=TOKENS, output_len=TOKENS, arrivals="in-process-burst"),
        stages=(StageConfig(max_num_seqs=BATCH, request_rate=rate, num_prompts=count),),
        settings={"kv_blocks": kv_blocks},
    )
    return predict_cell(spec, spec.stages[0])
