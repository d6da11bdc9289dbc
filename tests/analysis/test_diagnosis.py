"""The diagnosis of what limits throughput: each rule in its situation and at its limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.engine_gauges import KV_FULL, STALE_AFTER
from servetop.analysis.live_stats import LiveStats, Rates, StatsSeries
from servetop.analysis.verdicts.diagnosis import (
    BATCH_FULL,
    PREEMPTING,
    Bottleneck,
    Diagnosis,
    diagnose,
)
from servetop.analysis.verdicts.trust import Trust
from servetop.core.events import EngineSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import LoadGauges

BATCH = 256
FACTS = EngineFacts(name="vllm", title="vLLM", max_num_seqs=BATCH)
SAMPLE = EngineSample(scrape_start=59.9, scrape_end=59.9, running=80, waiting=0, kv_usage=0.5)
KEEPING_UP = Rates(offered=16.0, sent=16.0, completed=16.0, preemptions=0.0)
FALLING_BEHIND = Rates(offered=16.0, sent=16.0, completed=12.0, preemptions=0.0)


def stats_of(
    rates: Rates = KEEPING_UP, *, growth: float = 0.0, load: LoadGauges | None = None, trust: Trust | None = None,
    engine: EngineSample | None = SAMPLE,
) -> LiveStats:  # fmt: skip
    """The statistics at second 60 of a run whose queue grows by `growth` requests/s."""
    times = np.arange(1.0, 61.0)
    flat = np.full(60, 16.0)
    rising = 20 + growth * times
    series = StatsSeries(
        times=times, offered=flat, sent=flat, completed=flat, in_flight=rising, queued=flat, output_tokens=flat,
        prompt_tokens=flat, engine_output_tokens=flat, kv_usage=flat, running=flat, waiting=rising, preemptions=flat,
        latencies={}, stages=np.zeros(60, dtype=np.int64),
    )  # fmt: skip
    return LiveStats(
        at=60.0, window=10.0, span=60.0, load=load or LoadGauges(stage=0, request_rate=16.0, in_flight=80),
        rates=rates, engine=engine, trust=trust or Trust(slip_p99=0.001, loop_lag_p99=0.001), series=series,
    )  # fmt: skip


def sampled(**figures: Any) -> EngineSample:
    return replace(SAMPLE, **figures)


def line_of(stats: LiveStats, facts: EngineFacts | None = FACTS) -> str:
    return diagnose(stats, facts).line


def test_full_blocks_and_preemptions_are_kv_bound_with_advice_on_the_batch_size() -> None:
    stats = stats_of(replace(FALLING_BEHIND, preemptions=4.0), engine=sampled(running=214, waiting=31, kv_usage=0.997))
    assert line_of(stats) == (
        "KV-bound: 99.7 % of blocks, 4.0 preemptions/s, 31 waiting → max_num_seqs ≈ 192 or more KV memory"
    )


def test_full_blocks_with_a_queue_and_without_preemptions_need_memory() -> None:
    stats = stats_of(FALLING_BEHIND, engine=sampled(running=180, waiting=40, kv_usage=0.96))
    assert line_of(stats) == "KV-bound: 96.0 % of blocks, 40 waiting → more KV memory, or shorter requests"


def test_the_advised_batch_size_is_never_larger_than_the_current_one() -> None:
    stats = stats_of(replace(FALLING_BEHIND, preemptions=1.0), engine=sampled(running=300, waiting=9, kv_usage=0.99))
    assert diagnose(stats, FACTS).advice == "more KV memory, or shorter requests"


@pytest.mark.parametrize(
    ("kv", "preemptions", "waiting", "limit"),
    [
        (KV_FULL, PREEMPTING + 0.01, 0, Bottleneck.KV),
        (KV_FULL - 0.001, 9.0, 0, Bottleneck.HEADROOM),
        (KV_FULL, PREEMPTING, 2, Bottleneck.HEADROOM),
        (KV_FULL, 0.0, 3, Bottleneck.KV),
        (KV_FULL, math.nan, 3, Bottleneck.KV),
    ],
)
def test_the_limits_of_kv_bound(kv: float, preemptions: float, waiting: int, limit: Bottleneck) -> None:
    stats = stats_of(replace(KEEPING_UP, preemptions=preemptions), engine=sampled(kv_usage=kv, waiting=waiting))
    assert diagnose(stats, FACTS).bottleneck is limit


def test_kv_usage_is_computed_from_blocks_if_not_exported() -> None:
    sample = sampled(kv_usage=None, kv_blocks_used=2871, kv_blocks_total=2880, waiting=9)
    assert line_of(stats_of(FALLING_BEHIND, engine=sample)).startswith("KV-bound: 99.6 % of blocks")


def test_a_full_batch_with_free_blocks_is_batch_bound() -> None:
    stats = stats_of(FALLING_BEHIND, engine=sampled(running=256, waiting=12, kv_usage=0.6))
    assert (
        line_of(stats) == "batch-bound: running 256 of 256, 12 waiting, KV only 60.0 % → raise max_num_seqs, to ≈ 384"
    )


def test_a_larger_batch_is_not_advised_without_free_blocks() -> None:
    stats = stats_of(FALLING_BEHIND, engine=sampled(running=256, waiting=12, kv_usage=0.9))
    assert line_of(stats).endswith("KV 90.0 % → lower the rate: a larger batch would soon fill the KV blocks")


@pytest.mark.parametrize(
    ("running", "waiting", "limit"),
    [
        (math.ceil(BATCH * BATCH_FULL), 3, Bottleneck.BATCH),
        (math.floor(BATCH * BATCH_FULL), 3, Bottleneck.HEADROOM),
        (BATCH, 2, Bottleneck.HEADROOM),
    ],
)
def test_the_limits_of_batch_bound(running: int, waiting: int, limit: Bottleneck) -> None:
    assert diagnose(stats_of(engine=sampled(running=running, waiting=waiting)), FACTS).bottleneck is limit


def test_the_current_batch_size_takes_precedence_over_the_one_at_startup() -> None:
    stats = stats_of(FALLING_BEHIND, engine=sampled(running=64, waiting=9, max_num_seqs=64))
    assert diagnose(stats, FACTS).bottleneck is Bottleneck.BATCH


def test_requests_queued_at_the_client_are_concurrency_limited() -> None:
    load = LoadGauges(stage=0, max_concurrency=64, in_flight=64, queued=210)
    trust = Trust(slip_p99=0.001, limited=True)
    assert line_of(stats_of(FALLING_BEHIND, load=load, trust=trust)) == (
        "concurrency-limited: 210 requests queued at the client, limit 64 in flight → raise the concurrency limit"
    )


def test_client_bound_takes_precedence_over_engine_verdicts() -> None:
    stats = stats_of(FALLING_BEHIND, trust=Trust(slip_p99=0.25), engine=sampled(kv_usage=0.99, waiting=50))
    assert line_of(stats).startswith("client-bound: requests sent 250 ms late at p99 → ")


def test_for_a_queue_that_grows_below_all_limits_a_lower_rate_is_advised() -> None:
    stats = stats_of(FALLING_BEHIND, growth=2.1, engine=sampled(waiting=146))
    assert line_of(stats) == (
        "queue growing: +2.1 requests/s, 146 waiting, done 12.0 of 16.0 req/s → lower the rate below 12.0"
    )


def test_without_metrics_a_growing_queue_is_detected_from_requests_in_flight() -> None:
    bare = EngineSample(scrape_start=59.9, scrape_end=59.9)
    line = line_of(stats_of(FALLING_BEHIND, growth=4.0, engine=bare), replace(FACTS, max_num_seqs=None))
    assert line.startswith("queue growing: +4.0 requests/s, done 12.0 of 16.0 req/s, cause unknown without KV usage, ")


def test_an_engine_that_keeps_up_is_load_bound() -> None:
    assert line_of(stats_of()) == "headroom: the engine keeps up, done 16.0 of 16.0 req/s, KV 50.0 % → raise the rate"


def test_missing_inputs_are_named() -> None:
    bare = sampled(waiting=None, kv_usage=None)
    assert line_of(stats_of(engine=bare)) == "unclear: KV usage, waiting not known"
    assert line_of(stats_of(engine=None)) == "unclear: KV usage, running, waiting, batch size not known"


def test_a_stale_sample_is_ignored() -> None:
    stale = sampled(scrape_end=60.0 - STALE_AFTER - 1, kv_usage=0.99, waiting=50)
    assert line_of(stats_of(engine=stale)) == "unclear: the engine's newest sample is 2.5 s old"


def test_a_stage_that_has_not_settled_is_unclear() -> None:
    assert line_of(stats_of(FALLING_BEHIND)) == (
        "unclear: nothing is at its limit, yet done 12.0 of 16.0 req/s → hold this stage until it is steady"
    )


def test_nothing_sent_and_nothing_in_flight_is_no_load() -> None:
    assert line_of(stats_of(Rates(), load=LoadGauges())) == "idle"
    assert line_of(stats_of(Rates(offered=0.0), load=LoadGauges(stage=0))) == "idle"


numbers = st.one_of(st.none(), st.floats(0, 1e6, allow_nan=False))


@given(running=numbers, waiting=numbers, kv=st.one_of(st.none(), st.floats(0, 1)), offered=st.floats(0, 1e5))
def test_any_statistics_give_one_diagnosis_on_one_line(
    running: float | None, waiting: float | None, kv: float | None, offered: float
) -> None:
    rates = Rates(offered=offered, completed=offered / 2, preemptions=math.nan)
    found = diagnose(stats_of(rates, engine=sampled(running=running, waiting=waiting, kv_usage=kv)), None)
    assert isinstance(found, Diagnosis)
    assert "\n" not in found.line
    assert "nan" not in found.line


def test_headroom_advice_depends_on_the_loop_and_on_preemptions() -> None:
    loop = LoadGauges(stage=0, request_rate=math.inf, max_concurrency=24, in_flight=24)
    assert diagnose(stats_of(load=loop), FACTS).advice == "raise the concurrency limit"
    preempting = diagnose(stats_of(replace(KEEPING_UP, preemptions=12.2), load=loop), FACTS)
    assert preempting.evidence[-1] == "12.2 preemptions/s"
    assert preempting.advice == "more KV memory: some requests are computed twice"
