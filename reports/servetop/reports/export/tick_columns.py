"""The columns of exported ticks: what the client saw in each 0.25 s."""

from __future__ import annotations

import math

from servetop.core.tick import Tick
from servetop.reports.export.exported_columns import ExportedColumn, field

_PERCENTILES = (50, 90, 99)
_LATENCIES = {
    "ttft": "TTFT of the first tokens that arrived in the tick",
    "ttft_due": "the same since the request was due",
    "ttfot": "time to the first token after reasoning",
    "itl": "inter-token latency of the tokens that arrived",
    "tpot": "time per output token of the requests that ended",
    "e2el": "end-to-end latency of the requests that ended",
    "slip": "lateness of requests that no limit delayed",
    "client_wait": "wait of requests that the concurrency limit delayed",
    "loop_lag": "lateness of the sender's heartbeat",
}
_CLIENT_COUNTS = {
    "due": ("due_requests", "requests that were due"),
    "sent": ("sent_requests", "requests sent"),
    "ok": ("ok_requests", "requests that succeeded"),
    "errors": ("error_requests", "requests that failed with an error"),
    "timeouts": ("timeout_requests", "requests that timed out"),
    "cancelled": ("cancelled_requests", "requests that were cancelled"),
    "truncated": ("truncated_requests", "requests whose stream was cut off"),
    "good": ("good_requests", "requests that ended within every objective, counted from sent"),
    "good_due": ("good_due_requests", "the same counted from due"),
    "prompt_tokens": ("prompt_tokens", "prompt tokens of the requests whose first token arrived"),
    "output_tokens": ("output_tokens", "output tokens that arrived"),
    "chunks": ("chunks", "chunks that arrived"),
    "stamped": ("stamped_chunks", "of these, those with a timestamp of the kernel"),
    "cpu_seconds": ("client_cpu_s", "processor time of the senders"),
}
_GAUGES = {
    "stage": ("stage", "number of the stage at the end of the tick; -1 before the load"),
    "request_rate": ("target_requests_per_s", "the rate in force; `inf`: as fast as the concurrency allows"),
    "max_concurrency": ("max_concurrency_requests", "the limit of requests in flight"),
    "in_flight": ("in_flight_requests", "requests sent and not finished, at the end of the tick"),
    "queued": ("queued_requests", "requests due that wait for the limit, at the end of the tick"),
    "holding": ("holding", "whether the ramp is held"),
    "paused": ("paused", "whether nothing is sent"),
    "sender_class": ("sender_class", "scheduling class of the senders: `real-time`, `ordinary` or `left`"),
}


def _percentile(metric: str, q: int) -> ExportedColumn:
    """Return the column of a percentile, None in a tick without such values."""

    def value(tick: Tick) -> float | None:
        found = getattr(tick.client, metric).percentile(q)
        return None if math.isnan(found) else round(found, 9)

    return ExportedColumn(f"{metric}_p{q}_s", f"p{q} of {metric}, within 1 %", value)


def _latency_columns(metric: str, meaning: str) -> tuple[ExportedColumn, ...]:
    def count(tick: Tick) -> int:
        return int(getattr(tick.client, metric).count)

    return (
        ExportedColumn(f"{metric}_values", f"number of values of {metric}: {meaning}", count),
        *(_percentile(metric, q) for q in _PERCENTILES),
    )


TICK_COLUMNS = (
    field("tick", "number of the tick", source="client.index"),
    field("start_s", "its start, since the start of the run", source="start"),
    field("end_s", "its end", source="end"),
    *(field(*_GAUGES[name], source=f"client.gauges.{name}") for name in _GAUGES),
    *(field(*_CLIENT_COUNTS[name], source=f"client.{name}") for name in _CLIENT_COUNTS),
    *(each for metric, meaning in _LATENCIES.items() for each in _latency_columns(metric, meaning)),
)
