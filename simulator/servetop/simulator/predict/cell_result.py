"""The numbers of one finished virtual run, in `servetop predict`'s JSON shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from servetop.simulator.predict.percentiles import expand_gaps, summary_ms
from servetop.simulator.predict.usage_integrals import UsageIntegrals
from servetop.simulator.predict.virtual_time import VirtualEngine


def cell_of(engines: Sequence[VirtualEngine]) -> dict[str, Any]:
    """Throughput in tokens/s over first arrival to last finish (ramp and drain included), latencies in ms."""
    ledgers = [engine.ledger for engine in engines]
    schedulers = [engine.scheduler for engine in engines]
    started = min((each.started_at for each in ledgers if each.started_at is not None), default=0.0)
    duration = max(each.ended_at for each in ledgers) - started
    output = sum(each.output_tokens for each in ledgers)
    total = output + sum(each.prompt_tokens for each in ledgers)
    return {
        "output_throughput": _per(output, duration),
        "total_token_throughput": _per(total, duration),
        "preemptions": sum(each.preemptions for each in schedulers),
        "recomputed_tokens": sum(each.recomputed_tokens for each in schedulers),
        "duration": duration,
        "completed": sum(len(each.finished) for each in ledgers),
        "refused": sum(each.refused for each in ledgers),
        "kv_blocks_total": sum(each.blocks.total for each in schedulers),
        "max_kv_usage": max(each.blocks.peak / each.blocks.total for each in schedulers),
        "mean_running": _per(sum(each.running_seconds for each in ledgers), duration),
        **_latencies(ledgers),
    }


def _latencies(ledgers: Sequence[UsageIntegrals]) -> dict[str, Any]:
    finished = [seq for ledger in ledgers for seq in ledger.finished]
    first = np.array([(seq.first_token_at or 0.0) - seq.arrival for seq in finished])
    whole = np.array([(seq.finished_at or 0.0) - seq.arrival for seq in finished])
    gaps, counts = expand_gaps([run for ledger in ledgers for run in ledger.gaps])
    return {"ttft_ms": summary_ms(first), "itl_ms": summary_ms(gaps, counts), "e2el_ms": summary_ms(whole)}


def _per(amount: float, seconds: float) -> float:
    return amount / seconds if seconds else 0.0
