"""Iteration statistics of TensorRT-LLM: JSON, and Prometheus metrics under its `trtllm_…` names.

Source: NVIDIA/TensorRT-LLM, `tensorrt_llm/metrics/collector.py` (names, help texts, buckets) and the iteration
statistics of `/metrics`. Each statistic is returned to one reader only, and none before the first request has
finished. The gauges of the Prometheus page are updated only when a request finishes.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from servetop.core.clock import wall_clock
from servetop.simulator.dialects.metric_counters import (
    HistogramSpec,
    Metric,
    MetricCounters,
    page_of,
    phases_of,
    series,
)
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.server.exposition import SampleSeries

MAX_UNREAD = 1000
"""Maximum unread iterations, and unread requests; older ones are dropped."""
LABELS = {"model_name": "undefined", "engine_type": "undefined"}
_TTFT = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_TOKEN = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
_REQUEST = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0),
    *(480.0, 960.0, 1920.0, 7680.0),
)
_HISTOGRAMS = {
    "trtllm_e2e_request_latency_seconds": HistogramSpec(
        "e2e", "Histogram of end to end request latency in seconds.", _REQUEST
    ),
    "trtllm_time_to_first_token_seconds": HistogramSpec("ttft", "Histogram of time to first token in seconds.", _TTFT),
    "trtllm_time_per_output_token_seconds": HistogramSpec(
        "per_token", "Histogram of time per output token in seconds.", _TOKEN
    ),
    "trtllm_request_queue_time_seconds": HistogramSpec(
        "queue", "Histogram of time spent in WAITING phase for request.", _REQUEST
    ),
}


class _Iteration(NamedTuple):
    """The statistics of one iteration. Times in seconds; `at` is Unix time."""

    number: int
    at: float
    seconds: float
    context: int
    context_tokens: int
    generating: int
    active: int
    queued: int
    paused: int
    used: int
    completed: int


class TensorRtLlmCounters(MetricCounters):
    """Counters of TensorRT-LLM, with the unread iterations and requests."""

    def __init__(self) -> None:
        super().__init__(_HISTOGRAMS, labels=LABELS)
        self._iterations: deque[_Iteration] = deque(maxlen=MAX_UNREAD)
        self._requests: deque[dict[str, Any]] = deque(maxlen=MAX_UNREAD)
        self._completed = self._preempted = 0
        self._last_finish: _Iteration | None = None
        """The iteration in which the last finished request ended."""
        self._last: _Iteration | None = None

    def stepped(self, tokens: int, /) -> None:
        """Record the statistics of an iteration."""
        super().stepped(tokens)
        engine = self.engine
        if engine is None or engine.work is None:
            return
        work, scheduler = engine.work, engine.scheduler
        paused, self._preempted = scheduler.preemptions - self._preempted, scheduler.preemptions
        completed, self._completed = self.finishes - self._completed, self.finishes
        self._last = _Iteration(
            number=self.steps,
            at=wall_clock(),
            seconds=engine.step_seconds,
            context=len(work.chunks),
            context_tokens=sum(chunk.tokens for chunk in work.chunks),
            generating=work.decoding,
            active=scheduler.running,
            queued=len(scheduler.waiting),
            paused=paused,
            used=engine.kv_blocks_used,
            completed=completed,
        )
        self._iterations.append(self._last)

    def finished(self, seq: SimSequence, at: float, /) -> None:
        """Add a finished request, and update the gauges."""
        super().finished(seq, at)
        self._last_finish = self._last
        self._requests.append(_perf_metrics(seq, number=self.finishes))

    def drain(self) -> list[dict[str, Any]]:
        """Return the iterations since the last call; none before the first request has finished."""
        if not self.finishes:
            return []
        drained = [self._json(iteration) for iteration in self._iterations]
        self._iterations.clear()
        return drained

    def drain_requests(self) -> list[dict[str, Any]]:
        """Return the requests finished since the last call."""
        drained = list(self._requests)
        self._requests.clear()
        return drained

    def page(self) -> bytes:
        """Return the page `/prometheus/metrics` in Prometheus text format."""
        success = SampleSeries(
            "trtllm_request_success_total", "Count of successfully processed requests.", kind="counter", labels=LABELS
        )
        for reason, count in self.reasons.items():
            success.set(count, finished_reason=reason)
        counters = {
            "trtllm_prompt_tokens_total": Metric(
                "Cumulative number of prompt (input) tokens processed.", self.finished_prompt_tokens, "counter"
            ),
            "trtllm_generation_tokens_total": Metric(
                "Cumulative number of generation (output) tokens produced.", self.finished_output_tokens, "counter"
            ),
            "trtllm_prompt_cached_tokens_total": Metric(
                "Cumulative number of cached prompt tokens.", self.cached_tokens, "counter"
            ),
        }
        tables = series(counters | self._gauges(), labels=LABELS)
        return page_of([success, *tables, *self.histograms.values()])

    def _gauges(self) -> dict[str, Metric]:
        if self._last_finish is None or self.engine is None:
            return {}
        iteration, scheduler = self._last_finish, self.engine.scheduler
        total, limit = scheduler.blocks.total, scheduler.limits.max_num_seqs
        values: dict[str, tuple[str, float]] = {
            "num_requests_running": ("Number of active requests", iteration.active),
            "num_requests_waiting": ("Number of queued requests", iteration.queued),
            "num_scheduled_requests": ("Number of scheduled requests", iteration.context + iteration.generating),
            "num_context_requests": ("Number of context requests", iteration.context),
            "num_generation_requests": ("Number of generation requests", iteration.generating),
            "num_paused_requests": ("Number of paused requests", iteration.paused),
            "max_num_active_requests": ("Maximum number of active requests", limit),
            "max_batch_size_static": ("Static maximum batch size", limit),
            "max_batch_size_runtime": ("Runtime maximum batch size", limit),
            "kv_cache_max_blocks": ("Maximum number of KV cache blocks", total),
            "kv_cache_used_blocks": ("Number of used KV cache blocks", iteration.used),
            "kv_cache_free_blocks": ("Number of free KV cache blocks", total - iteration.used),
            "kv_cache_tokens_per_block": ("Number of tokens per KV cache block", scheduler.blocks.block_size),
            "kv_cache_utilization": ("KV cache utilization", iteration.used / total),
            "iteration_latency_seconds": ("Iteration latency in seconds", iteration.seconds),
        }
        return {f"trtllm_{name}": Metric(text, value) for name, (text, value) in values.items()}

    def _json(self, iteration: _Iteration) -> dict[str, Any]:
        """Return an iteration in the format of TensorRT-LLM's IterationStats; fields without simulated values are 0."""
        assert self.engine is not None
        scheduler = self.engine.scheduler
        limit, total = scheduler.limits.max_num_seqs, scheduler.blocks.total
        tokens = scheduler.limits.max_num_batched_tokens
        return {
            "iter": iteration.number,
            "iterLatencyMS": iteration.seconds * 1e3,
            "timestamp": str(iteration.at),
            **dict.fromkeys(("gpuMemUsage", "cpuMemUsage", "pinnedMemUsage"), 0),
            "numActiveRequests": iteration.active,
            "numQueuedRequests": iteration.queued,
            "numNewActiveRequests": iteration.context,
            "numCompletedRequests": iteration.completed,
            "maxNumActiveRequests": limit,
            "newActiveRequestsQueueLatencyMS": 0.0,
            **{f"maxBatchSize{which}": limit for which in ("Static", "Runtime", "TunerRecommended")},
            **{f"maxNumTokens{which}": tokens for which in ("Static", "Runtime", "TunerRecommended")},
            "kvCacheStats": {
                "maxNumBlocks": total,
                "freeNumBlocks": total - iteration.used,
                "usedNumBlocks": iteration.used,
                "tokensPerBlock": scheduler.blocks.block_size,
                **dict.fromkeys(("allocTotalBlocks", "allocNewBlocks", "reusedBlocks", "missedBlocks"), 0),
                "cacheHitRate": 0.0,
            },
            "inflightBatchingStats": {
                "numScheduledRequests": iteration.context + iteration.generating,
                "numContextRequests": iteration.context,
                "numGenRequests": iteration.generating,
                "numPausedRequests": iteration.paused,
                "numCtxTokens": iteration.context_tokens,
                "microBatchId": 0,
                "avgNumDecodedTokensPerIter": 1.0 if iteration.generating else 0.0,
            },
            "staticBatchingStats": None,
        }


def _perf_metrics(seq: SimSequence, *, number: int) -> dict[str, Any]:
    """Return one request in the format of `/perf_metrics`; times are seconds on the server's clock."""
    phases = phases_of(seq, tokens=seq.output_tokens)
    timing = {
        "arrival_time": seq.arrival,
        "first_scheduled_time": seq.arrival + phases.queue,
        "first_token_time": seq.arrival + phases.ttft,
        "last_token_time": seq.arrival + phases.e2e,
    }
    return {"request_id": number, "perf_metrics": {"timing_metrics": timing}}
