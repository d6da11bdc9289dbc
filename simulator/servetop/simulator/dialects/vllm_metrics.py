"""The simulator's metrics page: names, types, labels and buckets of vLLM 0.32, and a few `servetop_sim_…` metrics."""

from __future__ import annotations

from collections.abc import Callable

from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.server.exposition import Histogram, Labels, SampleSeries
from servetop.simulator.server.process_metrics import process_metrics
from servetop.simulator.server.realtime import RealTimeEngine

_TTFT = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_TOKEN_GAP = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
_REQUEST = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0),
    *(480.0, 960.0, 1920.0, 7680.0),
)
_TOKENS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_STEP_TOKENS = tuple(float(2**power) for power in (0, *range(3, 15)))
_PREEMPTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)
_LATENESS = (0.0001, 0.0002, 0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
_FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")

_REQUEST_TIMES = {
    "e2e_request_latency": "Histogram of e2e request latency in seconds.",
    "request_queue_time": "Histogram of time spent in WAITING phase for request.",
    "request_inference_time": "Histogram of time spent in RUNNING phase for request.",
    "request_prefill_time": "Histogram of time spent in PREFILL phase for request.",
    "request_decode_time": "Histogram of time spent in DECODE phase for request.",
}
_REQUEST_TOKENS = {
    "request_prompt_tokens": "Number of prefill tokens processed.",
    "request_generation_tokens": "Number of generation tokens processed.",
    "request_params_max_tokens": "Histogram of the max_tokens request parameter.",
    "request_max_num_generation_tokens": "Histogram of maximum number of requested generation tokens.",
    "request_prefill_kv_computed_tokens": "New KV tokens computed during prefill (excluding cached tokens).",
}


class VllmCounters:
    """Counters and histograms updated by the engine's events; the gauges are read when the page is requested."""

    def __init__(self, model_name: str, *, spec: SimSpec, clock: Callable[[], float]) -> None:
        self.engine: RealTimeEngine | None = None
        self._spec = spec
        self._clock = clock
        self.labels: Labels = {"engine": "0", "model_name": model_name}
        self.generated_tokens = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.lateness = self._seconds(
            "servetop_sim_token_lateness", "How long after its due time a token was written.", bounds=_LATENESS
        )
        self.first_token = self._seconds(
            "vllm:time_to_first_token", "Histogram of time to first token in seconds.", bounds=_TTFT
        )
        self.token_gap = self._seconds(
            "vllm:inter_token_latency", "Histogram of inter-token latency in seconds.", bounds=_TOKEN_GAP
        )
        self.per_token = self._seconds(
            "vllm:request_time_per_output_token",
            "Histogram of time_per_output_token_seconds per request.",
            bounds=_TOKEN_GAP,
        )
        self._times = {
            name: self._seconds(f"vllm:{name}", text, bounds=_REQUEST) for name, text in _REQUEST_TIMES.items()
        }
        self._tokens = {
            name: self._count(f"vllm:{name}", text, bounds=_TOKENS) for name, text in _REQUEST_TOKENS.items()
        }
        self.step_tokens = self._count(
            "vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", bounds=_STEP_TOKENS
        )
        self._preemptions = self._count(
            "vllm:request_num_preemptions",
            "Histogram of the number of times a request was preempted.",
            bounds=_PREEMPTIONS,
        )
        self._params_n = self._count(
            "vllm:request_params_n", "Histogram of the n request parameter.", bounds=(1.0, 2.0, 5.0, 10.0, 20.0)
        )
        self._success = self._finish_counts()

    def aborted(self) -> None:
        """Count a request whose client disconnected."""
        self._success.add(1.0, finished_reason="abort")

    def stepped(self, tokens: int, /) -> None:
        """Observe the tokens of one iteration."""
        self.step_tokens.observe(tokens)

    def emitted(self, count: int, *, due: float) -> None:
        """Count sent tokens; the lateness of the last one is recorded for all."""
        if count:
            self.generated_tokens += count
            self.lateness.observe(max(self._clock() - due, 0.0), count)

    def first(self, seq: SimSequence, at: float, /) -> None:
        """Observe the TTFT of a request."""
        self.first_token.observe(at - seq.arrival)
        self.prompt_tokens += seq.prompt_tokens
        self.cached_tokens += seq.cached_tokens

    def gap(self, seconds: float, count: int, /) -> None:
        """Observe `count` equal inter-token latencies."""
        self.token_gap.observe(seconds, count)

    def finished(self, seq: SimSequence, now: float, /) -> None:
        """Observe a completed request."""
        reason = "length" if seq.output_tokens >= seq.request.limit else "stop"
        scheduled = seq.arrival if seq.scheduled_at is None else seq.scheduled_at
        first = now if seq.first_token_at is None else seq.first_token_at
        self._times["e2e_request_latency"].observe(now - seq.arrival)
        self._times["request_queue_time"].observe(scheduled - seq.arrival)
        self._times["request_inference_time"].observe(now - scheduled)
        self._times["request_prefill_time"].observe(first - scheduled)
        self._times["request_decode_time"].observe(now - first)
        self._tokens["request_prompt_tokens"].observe(seq.prompt_tokens)
        self._tokens["request_generation_tokens"].observe(seq.output_tokens)
        self._tokens["request_params_max_tokens"].observe(seq.request.limit)
        self._tokens["request_max_num_generation_tokens"].observe(seq.request.limit)
        self._tokens["request_prefill_kv_computed_tokens"].observe(seq.prompt_tokens - seq.cached_tokens)
        if seq.output_tokens > 1:
            self.per_token.observe((now - first) / (seq.output_tokens - 1))
        self._preemptions.observe(seq.preemptions)
        self._params_n.observe(1)
        self._success.add(1.0, finished_reason=reason)

    def page(self) -> bytes:
        """Return the metrics page in Prometheus text format."""
        engine = self.engine
        assert engine is not None
        parts = [
            *(*process_metrics(), *self._gauges(engine, self._spec), *self._counters(engine)),
            *(self._prompt_sources(), self._success),
        ]
        histograms: list[Histogram] = [
            *(self.first_token, self.token_gap, self.per_token, self.step_tokens, self.lateness),
            *(*self._times.values(), *self._tokens.values(), self._preemptions, self._params_n),
        ]
        lines = [line for part in parts for line in part.lines()]
        lines += [line for histogram in histograms for line in histogram.lines()]
        return ("\n".join(lines) + "\n").encode()

    def _prompt_sources(self) -> SampleSeries:
        text = "Number of prompt tokens by source."
        sources = SampleSeries("vllm:prompt_tokens_by_source_total", text, kind="counter", labels=self.labels)
        sources.set(self.prompt_tokens - self.cached_tokens, source="local_compute")
        sources.set(self.cached_tokens, source="local_cache_hit")
        sources.set(0, source="external_kv_transfer")
        return sources

    def _finish_counts(self) -> SampleSeries:
        text = "Count of successfully processed requests."
        counts = SampleSeries("vllm:request_success_total", text, kind="counter", labels=self.labels)
        for reason in _FINISH_REASONS:
            counts.set(0.0, finished_reason=reason)
        return counts

    def _gauges(self, engine: RealTimeEngine, spec: SimSpec) -> list[SampleSeries]:
        running = engine.scheduler.running
        waiting = len(engine.scheduler.waiting) + len(engine.scheduler.swapped)
        by_reason = SampleSeries(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason.",
            kind="gauge",
            labels=self.labels,
        )
        by_reason.set(waiting, reason="capacity")
        by_reason.set(0, reason="deferred")
        return [
            self._gauge("num_requests_running", "Number of requests in model execution batches.", value=running),
            self._gauge("num_requests_waiting", "Number of requests waiting to be processed.", value=waiting),
            by_reason,
            self._gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", value=engine.kv_usage),
            self._cache_config(engine, spec),
            *self._own_gauges(engine, spec),
        ]

    def _cache_config(self, engine: RealTimeEngine, spec: SimSpec) -> SampleSeries:
        blocks = engine.scheduler.blocks
        tokens = blocks.total * blocks.block_size
        info = SampleSeries(
            "vllm:cache_config_info", "Information of the LLMEngine CacheConfig", kind="gauge", labels={"engine": "0"}
        )
        info.set(
            1.0,
            block_size=str(blocks.block_size),
            cache_dtype="auto",
            enable_prefix_caching=str(spec.engine.prefix_cache),
            gpu_memory_utilization=str(spec.engine.memory_utilization),
            kv_cache_max_concurrency=f"{tokens / spec.context_limit:.2f}",
            kv_cache_size_tokens=str(tokens),
            num_cpu_blocks="None",
            num_gpu_blocks=str(blocks.total),
        )
        return info

    def _own_gauges(self, engine: RealTimeEngine, spec: SimSpec) -> list[SampleSeries]:
        info = SampleSeries("servetop_sim_info", "What is simulated.", kind="gauge", labels={})
        info.set(
            1.0, model=spec.model.name, gpu=spec.gpu.name, engine_profile=spec.engine.name, policy=spec.engine.policy
        )
        batch = SampleSeries(
            "servetop_sim_max_num_seqs", "The batch-size limit in force.", kind="gauge", labels=self.labels
        )
        batch.set(engine.scheduler.limits.max_num_seqs)
        return [info, batch]

    def _counters(self, engine: RealTimeEngine) -> list[SampleSeries]:
        prefix = engine.scheduler.prefix
        counters: dict[str, tuple[str, float]] = {
            "num_preemptions": ("Cumulative number of preemption from the engine.", engine.scheduler.preemptions),
            "prompt_tokens": ("Number of prefill tokens processed.", self.prompt_tokens),
            "generation_tokens": ("Number of generation tokens processed.", self.generated_tokens),
            "prompt_tokens_cached": ("Number of cached prompt tokens (local + external).", self.cached_tokens),
            "prefix_cache_queries": (
                "Prefix cache queries, in terms of number of queried tokens.",
                prefix.queried_tokens if prefix else 0,
            ),
            "prefix_cache_hits": (
                "Prefix cache hits, in terms of number of cached tokens.",
                prefix.hit_tokens if prefix else 0,
            ),
        }
        return [self._counter(f"{name}_total", text, value=value) for name, (text, value) in counters.items()]

    def _gauge(self, name: str, text: str, *, value: float) -> SampleSeries:
        series = SampleSeries(f"vllm:{name}", text, kind="gauge", labels=self.labels)
        series.set(value)
        return series

    def _counter(self, name: str, text: str, *, value: float) -> SampleSeries:
        series = SampleSeries(f"vllm:{name}", text, kind="counter", labels=self.labels)
        series.set(value)
        return series

    def _seconds(self, name: str, text: str, *, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(f"{name}_seconds", text, bounds=bounds, labels=self.labels)

    def _count(self, name: str, text: str, *, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, bounds=bounds, labels=self.labels)
