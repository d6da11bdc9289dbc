"""The progress of a start is read from the engine's log; other lines are ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.engines.process.startup_progress import startup_step


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Loading safetensors checkpoint shards:  38% Completed | 3/8 [00:13<00:11,  2.87s/it]", "loading weights 3/8"),
        ("(Worker pid=3615) INFO 11-21 09:20:15 [cpu_model_runner.py:68] Starting to load model /models/tiny-llama...",
         "loading weights"),
        ("Multi-thread loading shards:  75% Completed | 3/4 [00:01<00:00,  2.01it/s]", "loading weights 3/4"),
        ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  34%|###   | 23/67 [00:01<00:02]",
         "capturing CUDA graphs 23/67"),
        ("INFO [backends.py:1128] Dynamo bytecode transform time: 3.54 s", "compiling"),
        ("INFO [kv_cache_utils.py:2327] GPU KV cache size: 2,048 tokens", "sizing the KV cache"),
        ("INFO shard-manager: text_generation_launcher: Waiting for shard to be ready... rank=0", "loading weights"),
        ("INFO download: text_generation_launcher: Starting download process.", "downloading weights"),
        ("[2025-01-01 00:00:00 TP0] Load weight begin. avail mem=78.6 GB", "loading weights"),
        ("0.00.006.642 I srv    load_model: loading model 'tiny.gguf'", "loading weights"),
        ("text_generation_router: Warming up model", "warming up"),
        ("[vllm.py:1703] Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup. This is", ""),
        ("INFO [core.py:402] init engine (profile, create kv cache, warmup model) took 0.02 s", ""),
        ("INFO:     Application startup complete.", ""),
        ("api key is None", ""),
    ],
)  # fmt: skip
def test_a_log_line_gives_the_startup_step(line: str, step: str) -> None:
    assert startup_step([line]) == step


def test_the_newest_matching_line_counts() -> None:
    lines = ["Loading safetensors checkpoint shards: 1/3", "Loading safetensors checkpoint shards: 2/3", "", "noise"]
    assert startup_step(lines) == "loading weights 2/3"
    assert startup_step([]) == ""


@given(st.lists(st.text(max_size=200), max_size=5))
def test_no_log_can_confuse_it(lines: list[str]) -> None:
    assert len(startup_step(lines)) < 500
