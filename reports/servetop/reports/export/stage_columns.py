"""The columns of exported stages: load, outcome, totals and latencies, as in the summary."""

from __future__ import annotations

from servetop.analysis.summary.summary_types import StageSummary
from servetop.core.units import MS_PER_S
from servetop.reports.export.exported_columns import ExportedColumn, field

_STATISTICS = ("mean", "std", "p50", "p90", "p95", "p99")
_LATENCIES = {
    "ttft": "time to first token",
    "tpot": "time per output token",
    "itl": "inter-token latency",
    "e2el": "end-to-end latency",
    "ttft_from_due": "time to first token since due",
    "e2el_from_due": "end-to-end latency since due",
    "client_queue_time": "time from due to sent",
}
_TOTALS = {
    "num_prompts": ("ended_requests", "requests that ended, without the cool-down"),
    "completed": ("ok_requests", "requests that succeeded"),
    "failed": ("failed_requests", "requests that failed: errors, time-outs and cut streams"),
    "cancelled": ("cancelled_requests", "requests that were cancelled"),
    "duration": ("duration_s", "from the first request sent to the last one done"),
    "total_input_tokens": ("prompt_tokens", "prompt tokens of the requests that succeeded"),
    "total_output_tokens": ("output_tokens", "their output tokens"),
    "request_throughput": ("ok_requests_per_s", "requests that succeeded per second"),
    "request_goodput": ("good_requests_per_s", "requests within every objective per second"),
    "output_throughput": ("output_tokens_per_s", "output tokens per second"),
    "total_token_throughput": ("tokens_per_s", "prompt and output tokens per second"),
    "max_output_tokens_per_s": ("max_output_tokens_per_s", "the most in one second"),
    "max_concurrent_requests": ("max_concurrent_requests", "the most requests in flight"),
}


def _latency(metric: str, statistic: str, meaning: str) -> ExportedColumn:
    """Return the column of a statistic in seconds, None if nothing was measured."""

    def value(stage: StageSummary) -> float | None:
        milliseconds = stage.measured.requests.latency(metric, statistic)
        return None if milliseconds is None else milliseconds / MS_PER_S

    return ExportedColumn(f"{metric}_{statistic}_s", f"{statistic} of {metric}, {meaning}", value)


STAGE_COLUMNS = (
    field("stage", "number of the stage"),
    field("label", "its name"),
    field("start_s", "its start, since the start of the run", source="start"),
    field("end_s", "its end", source="end"),
    field("target_requests_per_s", "the rate; `inf`: as fast as the concurrency allows", source="request_rate"),
    field("max_concurrency_requests", "the limit of requests in flight", source="max_concurrency"),
    field("max_num_seqs", "limit of the engine's batch"),
    field("repeat", "repetition of the same cell of a sweep, from 0"),
    field("outcome", "whether it was measured as a whole"),
    field("counted", "whether the totals of the run contain it"),
    field("steered", "how a command changed its load"),
    field("failure", "why it could not be measured to its end"),
    field("cooldown_requests", "requests of its cool-down, which no total contains"),
    field("preemptions", "preemptions of the engine"),
    *(field(*_TOTALS[name], source=f"measured.requests.{name}") for name in _TOTALS),
    *(_latency(metric, each, meaning) for metric, meaning in _LATENCIES.items() for each in _STATISTICS),
)
