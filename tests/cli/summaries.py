"""Summaries for tests of tables: nothing measured but what a test gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servetop.analysis.summary.set_up_types import RunSetUp
from servetop.analysis.summary.summary_types import (
    METRICS,
    EnergySummary,
    EngineSummary,
    LatencySummary,
    Measurements,
    RequestSummary,
    RunSummary,
    ServerSummary,
    StageSummary,
    SteadySummary,
)
from servetop.analysis.summary.trust_types import EngineTimesSummary, TrustSummary

NO_STEADY = SteadySummary(start=None, end=None, seconds=None, method="", reason="short", measured=None)
TRUST = TrustSummary(
    slip_p99_ms=None, slip_basis="", loop_lag_p99_ms=None, stamped=False, late_share=None, offered_rate=None,
    sent_rate=None, completed_rate=None, itl_uncertainty_p99_ms=None, littles_law_error=None, token_error=None,
    engine_times=EngineTimesSummary(), sender_class=None, compared=(), advice=None,
    held_back=False, littles_law_limit=0.05, sent_exemption=None, verdict="ok", reasons=(), token_source=None,
    output_share=None,
)  # fmt: skip


def requests(*, percentiles: Sequence[str] = ("p50", "p90", "p95", "p99"), **fields: Any) -> RequestSummary:
    """Every latency is 5 ms."""
    latency = LatencySummary(mean=5.0, std=5.0, median=5.0, percentiles=dict.fromkeys(percentiles, 5.0))
    counts: dict[str, Any] = dict.fromkeys(
        (
            "num_prompts", "completed", "failed", "errors", "timeouts", "truncated", "cancelled", "total_input_tokens",
            "total_output_tokens", "max_concurrent_requests",
        ),
        0,
    )  # fmt: skip
    rates: dict[str, Any] = dict.fromkeys(
        ("request_throughput", "request_goodput", "output_throughput", "total_token_throughput")
    )
    values: dict[str, Any] = {"duration": 0.0, "max_output_tokens_per_s": 0.0, "total_reasoning_tokens": None}
    values |= {"itl_reason": None, "latencies": dict.fromkeys(METRICS, latency)}
    return RequestSummary(**counts | rates | values | fields)


def measured(*, peaks_reason: str | None = None, trust: TrustSummary = TRUST, **fields: Any) -> Measurements:
    """`fields` are those of the requests."""
    server = ServerSummary(peaks_reason=peaks_reason)
    return Measurements(
        requests=requests(**fields), turns=None, server=server, energy=EnergySummary(), trust=trust
    )  # fmt: skip


def stage(label: str, *, steady: SteadySummary = NO_STEADY, **fields: Any) -> StageSummary:
    """A finished stage; `fields` are those of `measured`."""
    return StageSummary(
        stage=0, label=label, repeat=0, request_rate=None, max_concurrency=None, max_num_seqs=None, start=0.0, end=None,
        preemptions=None, cooldown_requests=0, measured=measured(**fields), steady=steady, finished=True,
        outcome="whole", failure=None, counted=True, steered=None,
    )  # fmt: skip


def run(*stages: StageSummary, goodput: Any = None, **fields: Any) -> RunSummary:
    """A run of stages; `fields` are those of `measured`."""
    engine = EngineSummary(name="sim", version=None, kv_blocks_total=None, max_num_seqs=None)
    set_up = RunSetUp(
        metadata={}, date="", endpoint_type="openai", backend="sim", label=None, model_id=None, tokenizer_id=None,
        request_rate=None, burstiness=None, max_concurrency=None, ramp=None, goodput=goodput,
    )  # fmt: skip
    return RunSummary(
        set_up=set_up, recording=None, recording_state="finished", engine=engine, prefix_cache="as-is", exit_code=0,
        error=None, measured=measured(**fields), failures=(), cooldown_requests=0, steady=NO_STEADY, models=None,
        replicas=None, stages=stages,
    )  # fmt: skip
