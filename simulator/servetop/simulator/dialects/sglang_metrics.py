"""The `sglang:` metrics: names of sglang 0.5.23, `srt/observability/metrics_collector.py`.

Bucket bounds are unverified. The gauges are updated only at each prefill and at every 40th decode in a row
(`--decode-log-interval`).
"""

from __future__ import annotations

from servetop.simulator.dialects.metric_counters import HistogramSpec, Metric, MetricCounters, page_of, series
from servetop.simulator.server.exposition import Histogram
from servetop.simulator.server.realtime import RealTimeEngine

DECODE_LOG_INTERVAL = 40
_TTFT = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0, 400.0)
_GAP = (0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 1.0)
_QUEUE = (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 1000.0)
_HISTOGRAMS = {
    "sglang:time_to_first_token_seconds": HistogramSpec("ttft", "Histogram of time to first token in seconds.", _TTFT),
    "sglang:e2e_request_latency_seconds": HistogramSpec(
        "e2e", "Histogram of End-to-end request latency in seconds", _TTFT
    ),
    "sglang:queue_time_seconds": HistogramSpec("queue", "Histogram of queueing time in seconds.", _QUEUE),
}

_TEXTS = {
    "num_running_reqs": "The number of running requests.",
    "num_queue_reqs": "The number of requests in the waiting queue.",
    "num_used_tokens": "The number of used tokens.",
    "kv_used_tokens": "Number of actively used token slots in the KV cache pool.",
    "kv_available_tokens": "Number of free token slots in the KV cache pool.",
    "token_usage": "The token usage.",
    "num_retracted_reqs": "The number of retracted requests.",
    "gen_throughput": "The generation throughput (token/s).",
    "cache_hit_rate": "The prefix cache hit rate.",
    "max_total_num_tokens": "Maximum total number of tokens in the KV cache pool.",
    "num_pages": "Number of pages in the KV cache pool.",
    "page_size": "Tokens per page.",
}


class SglangCounters(MetricCounters):
    """Counters of SGLang, with gauges that lag behind as in SGLang."""

    def __init__(self, model_name: str) -> None:
        self._labels = {"model_name": model_name, "engine_type": "unified", "tp_rank": "0", "pp_rank": "0"}
        super().__init__(_HISTOGRAMS, labels=self._labels)
        name = "sglang:inter_token_latency_seconds"
        text = "Histogram of inter-token latency in seconds."
        self.histograms[name] = self._gaps = Histogram(name, text, bounds=_GAP, labels=self._labels)
        self._gauges: dict[str, float] = {}
        self._decodes = self._retracted = 0

    def gap(self, seconds: float, count: int, /) -> None:
        """Observe `count` equal inter-token latencies."""
        self._gaps.observe(seconds, count)

    def stepped(self, tokens: int, /) -> None:
        """Count an iteration; a prefill and every 40th decode also update the gauges."""
        super().stepped(tokens)
        if self.engine is None or self.engine.work is None:
            return
        prefill = bool(self.engine.work.chunks)
        self._decodes = 0 if prefill else self._decodes + 1
        if prefill or self._decodes % DECODE_LOG_INTERVAL == 0:
            self._update_gauges(self.engine)

    def _update_gauges(self, engine: RealTimeEngine) -> None:
        scheduler, blocks, size = engine.scheduler, engine.scheduler.blocks, engine.scheduler.blocks.block_size
        used, total = engine.kv_blocks_used * size, blocks.total * size
        retracted, self._retracted = scheduler.preemptions - self._retracted, scheduler.preemptions
        prefix = scheduler.prefix
        queried = prefix.queried_tokens if prefix else 0
        self._gauges = {
            "num_running_reqs": scheduler.running,
            "num_queue_reqs": len(scheduler.waiting),
            "num_used_tokens": used,
            "kv_used_tokens": used,
            "kv_available_tokens": total - used,
            "token_usage": used / total,
            "num_retracted_reqs": retracted,
            "gen_throughput": scheduler.running / engine.step_seconds if engine.step_seconds else 0.0,
            "cache_hit_rate": prefix.hit_tokens / queried if prefix and queried else 0.0,
        }

    def page(self) -> bytes:
        """Return the metrics page in Prometheus text format, without gauges that were never set."""
        assert self.engine is not None
        scheduler = self.engine.scheduler
        blocks = scheduler.blocks
        fixed = {
            "max_total_num_tokens": blocks.total * blocks.block_size,
            "num_pages": blocks.total,
            "page_size": blocks.block_size,
        }
        counters: dict[str, tuple[str, float]] = {
            "prompt_tokens_total": ("Number of prefill tokens processed.", self.finished_prompt_tokens),
            "generation_tokens_total": ("Number of generation tokens processed.", self.finished_output_tokens),
            "num_requests_total": ("Number of requests processed.", self.finishes),
            "num_aborted_requests_total": ("Number of requests aborted.", self.aborts),
            "num_retracted_requests_total": ("Number of retracted requests.", scheduler.preemptions),
        }
        table = {f"sglang:{name}": Metric(_TEXTS[name], value) for name, value in {**self._gauges, **fixed}.items()}
        table |= {f"sglang:{name}": Metric(*pair, kind="counter") for name, pair in counters.items()}
        cached = Metric("Number of cached prompt tokens.", self.cached_tokens, "counter")
        cached_series = series(
            {"sglang:cached_tokens_total": cached}, labels={**self._labels, "cache_source": "device"}
        )
        return page_of([*series(table, labels=self._labels), *cached_series, *self.histograms.values()])
