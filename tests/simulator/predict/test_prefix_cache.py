"""The prefix cache with prefixes that requests share."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.simulator.model.sim_request import SimRequest
from servetop.simulator.predict.cell_clients import OpenLoop
from servetop.simulator.predict.client_requests import block_hashes
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from tests.simulator.predict.cells import result_of

MANY = settings(max_examples=200, deadline=None)


def test_a_prefix_cache_finds_shared_prefixes_and_earlier_turns() -> None:
    base = {"engine_profile": "vllm-current", "model": "llama-2-7b", "num_prompts": 30}
    alone, shared = (result_of(input_len=400 - prefix, prefix_len=prefix, **base) for prefix in (0, 384))
    assert shared.duration < 0.9 * alone.duration
    assert block_hashes(((1, 40), (2, 9)), 200, block_size=16) == block_hashes(((1, 40), (2, 8)), 200, block_size=16)
    assert len(block_hashes(((1, 40), (2, 9)), 200, block_size=16)) == 3
    assert block_hashes(((1, 40), (3, 9)), 200, block_size=16)[:2] == block_hashes(((1, 33),), 40, block_size=16)


def shared_prefix(*, cache: bool) -> VirtualEngine:
    keys = {"prefix_cache": cache, "kv_blocks": 300, "max_num_seqs": 4}
    engine = VirtualEngine(build_scheduler(sim_spec("opt-1.3b", gpu="a100-40", engine="vllm-current", settings=keys)))
    requests = [SimRequest(200, 20, 0, (*range(10), 100 + index, 200 + index)) for index in range(30)]
    engine.run(OpenLoop(requests, [index / 50 for index in range(30)]))
    return engine


def test_a_shared_prefix_is_computed_once_and_saves_blocks() -> None:
    cached, plain = shared_prefix(cache=True), shared_prefix(cache=False)
    assert cached.scheduler.prefix is not None
    assert cached.scheduler.prefix.hit_tokens == 29 * 160
    assert cached.scheduler.prefix.queried_tokens == 30 * 200
    assert cached.scheduler.blocks.peak < plain.scheduler.blocks.peak
    assert cached.usage.ended_at < plain.usage.ended_at
    assert cached.scheduler.blocks.used == 0


prefixed = st.builds(
    lambda blocks, rest, output, family: SimRequest(
        16 * blocks + rest, output, 0, tuple(family * 100 + index for index in range(blocks))
    ),
    *(st.integers(0, 5), st.integers(1, 15), st.integers(1, 20), st.integers(0, 2)),
)


@given(
    st.lists(prefixed, min_size=1, max_size=25),
    st.integers(8, 40),
    st.sampled_from(("chunked", "recompute", "reserve")),
)
@MANY
def test_a_prefix_cache_keeps_all_blocks_and_requests(requests: list[SimRequest], blocks: int, policy: str) -> None:
    keys = {"kv_blocks": blocks, "max_num_seqs": 6, "policy": policy, "prefix_cache": True}
    engine = VirtualEngine(build_scheduler(sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1", settings=keys)))
    engine.run(OpenLoop(requests, [index / 400 for index in range(len(requests))]))
    assert engine.scheduler.blocks.used == 0
    assert len(engine.usage.finished) + engine.usage.refused == len(requests)
