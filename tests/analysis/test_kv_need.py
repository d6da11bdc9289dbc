"""How many KV blocks the next request needs, at engines that reserve those of whole requests and at others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servetop.analysis.diagnosis.kv_need import (
    prompt_share,
    reserved_request,
    reserved_share,
    squared_outputs,
    token_share,
    whole_request,
)
from servetop.analysis.diagnosis.overload import Limit, has_room, limit_of
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, run_verdict
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.story.story import story_of
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.analysis.story_runs import QUEUE, ramp, record_from
from tests.analysis.test_run_verdict import record_of, with_objectives
from tests.simulator.virtual_run.runs import plan_of

BLOCKS, INPUT, OUTPUT = 439, 431, 110
SHAPE = WorkloadConfig(input_len=INPUT, output_len=OUTPUT)
LOADS = (StageConfig(request_rate=5.0, duration=15.0), StageConfig(request_rate=25.0, duration=20.0))


def queued(profile: str) -> VirtualRun:
    """A load that is soon more than a small cache holds."""
    plan = plan_of(*LOADS, workload=SHAPE, kv_blocks=BLOCKS, plan={"engine_profile": profile})
    return run_virtually(with_objectives(plan, ttft=0.5))


@pytest.fixture(scope="module")
def reserving() -> RunRecord:
    """TGI, which reserves the blocks of the output that a request asks for."""
    return record_of(queued("tgi-2024"))


@pytest.fixture(scope="module")
def growing() -> RunRecord:
    """An engine whose sequences take blocks as they grow."""
    return record_of(queued("vllm-0.6"))


def _needs(run: RunRecord) -> tuple[float, float]:
    """Return the fractions of the KV blocks by `reserved_request` and `whole_request`."""
    history, facts = run.history, run.header.engine
    return reserved_request(history, facts, 0, len(history)), whole_request(history, facts, len(history))


def test_a_reserved_request_needs_the_blocks_of_its_whole_output(reserving: RunRecord, growing: RunRecord) -> None:
    whole = (INPUT + OUTPUT) / 16 / BLOCKS
    assert _needs(reserving) == pytest.approx((whole, whole), rel=0.05)
    assert _needs(growing) == pytest.approx((0.0, whole), rel=0.05)


def test_a_cache_in_which_no_further_request_fits_is_the_limit_below_full_usage(reserving: RunRecord) -> None:
    assert run_verdict(reserving).cause is RunCause.KV
    assert np.nanmax(reserving.kv_usage()) < 0.95
    text = story_of(reserving, run_verdict(reserving)).lines[0].text
    assert text.startswith("the KV cache fills")


@pytest.mark.parametrize(("held", "share"), [(0.10, 0.0), (0.13, 0.0), (0.155, 0.155), (0.17, 0.16)])
def test_blocks_are_reserved_if_sequences_hold_more_than_those_of_half_their_output(held: float, share: float) -> None:
    """A sequence has 100 tokens in and 60 out; a token needs a thousandth of the cache."""
    columns = {"prompt": np.array([100.0]), "output": np.array([60.0]), "token": np.array([0.001])}
    assert reserved_share(np.array([held]), **columns) == pytest.approx([share])
    assert reserved_share(np.array([held]), **{**columns, "output": np.zeros(1)}) == [0.0]


def test_of_several_servers_and_of_unknown_blocks_no_share_is_known(reserving: RunRecord) -> None:
    facts = reserving.header.engine
    assert facts is not None
    for unknown in (
        None, replace(facts, kv_blocks_total=None), replace(facts, block_size=None),
        replace(facts, replica_urls=("http://a", "http://b")),
    ):  # fmt: skip
        stop = len(reserving.history)
        assert reserved_request(reserving.history, unknown, 0, stop) == 0.0
        assert whole_request(reserving.history, unknown, stop) == 0.0
    assert np.isnan(token_share(np.array([100.0]), None)).all()
    assert np.isnan(token_share(np.array([0.0]), facts)).all()
    assert token_share(np.array([100.0]), facts) == pytest.approx([1 / 1600])


def test_a_prompt_needs_its_blocks_and_one_more() -> None:
    ticks = ramp(waiting=[0.0])
    facts = EngineFacts(name="vllm", title="vLLM", block_size=16)
    assert prompt_share(ticks, np.full(4, 80.0), facts) == pytest.approx([8 / 80] * 4)  # 100 tokens each
    assert prompt_share(ticks, np.full(4, 80.0), None).tolist() == [0.0] * 4


def test_squares_are_those_of_the_lengths() -> None:
    assert squared_outputs(LogHistogram.of([10.0, 30.0])) == pytest.approx(1_000, rel=0.05)
    assert squared_outputs(LogHistogram.of([])) == 0.0


@pytest.mark.parametrize(("usage", "limit"), [(0.80, Limit.RATE), (0.90, Limit.UNKNOWN)])
def test_blocks_are_free_only_if_a_whole_request_would_fit(usage: float, limit: Limit) -> None:
    """A prompt needs 8 of 90 blocks, and the whole request of 150 tokens 9.4."""
    facts = EngineFacts(name="vllm", title="vLLM", max_num_seqs=64, kv_blocks_total=90, block_size=16)
    ticks = [
        replace(each, client=replace(each.client, input_len=LogHistogram.of([100.0] * 3)))
        for each in ramp(waiting=QUEUE, kv=usage, running=12)
    ]
    run = record_from(ticks, facts=facts)
    main = run_verdict(run).main
    assert main is not None
    assert limit_of(main, TickHistory(ticks), facts, until=run.until) is limit
    assert has_room(main, run.history, facts, until=run.until) is (limit is Limit.RATE)
    text = story_of(run, run_verdict(run)).lines[0].text
    assert ("with free KV blocks" in text) is (limit is Limit.RATE)
    assert "neither KV blocks nor the batch" not in text
