"""Iteration statistics of TensorRT-LLM, as JSON and under its `trtllm_…` names.

Source: NVIDIA/TensorRT-LLM, `tensorrt_llm/metrics/collector.py` (names, words, buckets) and the iteration statistics of
`/metrics`. Readings are handed out once: who reads takes them from everybody else. There are none before a request has
been served, and the gauges of the Prometheus page stand still between the ends of requests.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from servetop.core.clock import wall_clock
from servetop.simulator.dialects.metric_counters import Measure, Metric, MetricCounters, page_of, phases_of, series
from servetop.simulator.scheduling.sim_request import SimSequence
from servetop.simulator.server.exposition import SampleSeries

KEPT = 1000
"""Iterations, and requests, that wait to be read; older ones are lost."""
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
_MEASURES = {
    "trtllm_e2e_request_latency_seconds": Measure(
        "e2e", "Histogram of end to end request latency in seconds.", _REQUEST
    ),
    "trtllm_time_to_first_token_seconds": Measure("ttft", "Histogram of time to first token in seconds.", _TTFT),
    "trtllm_time_per_output_token_seconds": Measure(
        "per_token", "Histogram of time per output token in seconds.", _TOKEN
    ),
    "trtllm_request_queue_time_seconds": Measure(
        "queue", "Histogram of time spent in WAITING phase for request.", _REQUEST
    ),
}


class _Iteration(NamedTuple):
    """What is kept of one iteration. Times in seconds; `at` is Unix time."""

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
    """Keeps the iterations and requests that nobody has read yet."""

    def __init__(self) -> None:
        super().__init__(_MEASURES, labels=LABELS)
        self._iterations: deque[_Iteration] = deque(maxlen=KEPT)
        self._requests: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._completed = self._preempted = 0
        self._shown: _Iteration | None = None
        """The iteration at which the last request ended."""
        self._last: _Iteration | None = None

    def stepped(self, tokens: int, /) -> None:
        """An iteration ended; what it was is kept."""
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
        """A request is complete: only now do the gauges move."""
        super().finished(seq, at)
        self._shown = self._last
        self._requests.append(_perf_metrics(seq, number=self.finishes))

    def drain(self) -> list[dict[str, Any]]:
        """The iterations since the last call; none before a request has been served to its end."""
        if not self.finishes:
            return []
        drained = [self._json(iteration) for iteration in self._iterations]
        self._iterations.clear()
        return drained

    def drain_requests(self) -> list[dict[str, Any]]:
        """The finished requests since the last call."""
        drained = list(self._requests)
        self._requests.clear()
        return drained

    def page(self) -> bytes:
        """`/prometheus/metrics`."""
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
        if self._shown is None or self.engine is None:
            return {}
        one, scheduler = self._shown, self.engine.scheduler
        total, limit = scheduler.blocks.total, scheduler.limits.max_num_seqs
        values: dict[str, tuple[str, float]] = {
            "num_requests_running": ("Number of active requests", one.active),
            "num_requests_waiting": ("Number of queued requests", one.queued),
            "num_scheduled_requests": ("Number of scheduled requests", one.context + one.generating),
            "num_context_requests": ("Number of context requests", one.context),
            "num_generation_requests": ("Number of generation requests", one.generating),
            "num_paused_requests": ("Number of paused requests", one.paused),
            "max_num_active_requests": ("Maximum number of active requests", limit),
            "max_batch_size_static": ("Static maximum batch size", limit),
            "max_batch_size_runtime": ("Runtime maximum batch size", limit),
            "kv_cache_max_blocks": ("Maximum number of KV cache blocks", total),
            "kv_cache_used_blocks": ("Number of used KV cache blocks", one.used),
            "kv_cache_free_blocks": ("Number of free KV cache blocks", total - one.used),
            "kv_cache_tokens_per_block": ("Number of tokens per KV cache block", scheduler.blocks.block_size),
            "kv_cache_utilization": ("KV cache utilization", one.used / total),
            "iteration_latency_seconds": ("Iteration latency in seconds", one.seconds),
        }
        return {f"trtllm_{name}": Metric(text, value) for name, (text, value) in values.items()}

    def _json(self, one: _Iteration) -> dict[str, Any]:
        """Keys and units as TensorRT-LLM's IterationStats; what a simulator has none of is 0."""
        assert self.engine is not None
        scheduler = self.engine.scheduler
        limit, total = scheduler.limits.max_num_seqs, scheduler.blocks.total
        tokens = scheduler.limits.max_num_batched_tokens
        return {
            "iter": one.number,
            "iterLatencyMS": one.seconds * 1e3,
            "timestamp": str(one.at),
            **dict.fromkeys(("gpuMemUsage", "cpuMemUsage", "pinnedMemUsage"), 0),
            "numActiveRequests": one.active,
            "numQueuedRequests": one.queued,
            "numNewActiveRequests": one.context,
            "numCompletedRequests": one.completed,
            "maxNumActiveRequests": limit,
            "newActiveRequestsQueueLatencyMS": 0.0,
            **{f"maxBatchSize{which}": limit for which in ("Static", "Runtime", "TunerRecommended")},
            **{f"maxNumTokens{which}": tokens for which in ("Static", "Runtime", "TunerRecommended")},
            "kvCacheStats": {
                "maxNumBlocks": total,
                "freeNumBlocks": total - one.used,
                "usedNumBlocks": one.used,
                "tokensPerBlock": scheduler.blocks.block_size,
                **dict.fromkeys(("allocTotalBlocks", "allocNewBlocks", "reusedBlocks", "missedBlocks"), 0),
                "cacheHitRate": 0.0,
            },
            "inflightBatchingStats": {
                "numScheduledRequests": one.context + one.generating,
                "numContextRequests": one.context,
                "numGenRequests": one.generating,
                "numPausedRequests": one.paused,
                "numCtxTokens": one.context_tokens,
                "microBatchId": 0,
                "avgNumDecodedTokensPerIter": 1.0 if one.generating else 0.0,
            },
            "staticBatchingStats": None,
        }


def _perf_metrics(seq: SimSequence, *, number: int) -> dict[str, Any]:
    """One request of `/perf_metrics`; instants are seconds on the server's own clock."""
    phases = phases_of(seq, tokens=seq.output_tokens)
    timing = {
        "arrival_time": seq.arrival,
        "first_scheduled_time": seq.arrival + phases.queue,
        "first_token_time": seq.arrival + phases.ttft,
        "last_token_time": seq.arrival + phases.e2e,
    }
    return {"request_id": number, "perf_metrics": {"timing_metrics": timing}}
