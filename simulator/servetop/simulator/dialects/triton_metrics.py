"""Triton's metrics: its `nv_inference_…` families as captured, and those of the TensorRT-LLM backend.

Names: the captured page of Triton 2.51; triton-inference-server/tensorrtllm_backend, README, "Triton Metrics". The
backend's values, including paused requests, are gauges of the last iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from servetop.core.clock import wall_clock
from servetop.simulator.dialects.metric_counters import HistogramSpec, MetricCounters, page_of
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.server.exposition import SampleSeries

ENSEMBLE, BACKEND = {"model": "ensemble", "version": "1"}, {"model": "tensorrt_llm", "version": "1"}
_LENGTHS = (10.0, 50.0, 100.0, 500.0, 1000.0)
_HISTOGRAMS = {
    "nv_llm_input_token_len": HistogramSpec("prompt_tokens", "Input token length", _LENGTHS),
    "nv_llm_output_token_len": HistogramSpec("output_tokens", "Output token length", _LENGTHS),
}
_DURATIONS = {
    "request": "inference request duration in microseconds (includes cached requests)",
    "queue": "inference queuing duration in microseconds (includes cached requests)",
    "compute_input": "compute input duration in microseconds (does not include cached requests)",
    "compute_infer": "compute inference duration in microseconds (does not include cached requests)",
    "compute_output": "inference compute output duration in microseconds (does not include cached requests)",
}
_FAILURES = ("OTHER", "BACKEND", "CANCELED", "REJECTED")
_MEMORY = {
    "nv_pinned_memory_pool_total_bytes": "Pinned memory pool total memory size, in bytes",
    "nv_pinned_memory_pool_used_bytes": "Pinned memory pool used memory size, in bytes",
    "nv_cpu_utilization": "CPU utilization rate [0.0 - 1.0]",
    "nv_cpu_memory_total_bytes": "CPU total memory (RAM), in bytes",
    "nv_cpu_memory_used_bytes": "CPU used memory (RAM), in bytes",
}


class _Step(NamedTuple):
    """Requests and tokens of one iteration."""

    context: int = 0
    context_tokens: int = 0
    generating: int = 0
    paused: int = 0


class TritonCounters(MetricCounters):
    """Counters of Triton: gauges of the last iteration, and durations of finished requests."""

    def __init__(self) -> None:
        super().__init__(_HISTOGRAMS, labels=BACKEND)
        self._step = _Step()
        self._preempted = 0
        self.last_inference = 0.0
        """Unix time at which the last request finished; 0 before the first."""

    def stepped(self, tokens: int, /) -> None:
        """Record the requests and tokens of an iteration."""
        super().stepped(tokens)
        if self.engine is None or (work := self.engine.work) is None:
            return
        preempted = self.engine.scheduler.preemptions
        context_tokens = sum(chunk.tokens for chunk in work.chunks)
        self._step = _Step(len(work.chunks), context_tokens, work.decoding, preempted - self._preempted)
        self._preempted = preempted

    def finished(self, seq: SimSequence, at: float, /) -> None:
        """Add a finished request."""
        super().finished(seq, at)
        self.last_inference = wall_clock()

    def durations(self) -> dict[str, float]:
        """Return the summed seconds of all finished requests, by Triton's name of the phase."""
        by_name = {"request": "e2e", "queue": "queue", "compute_infer": "inference"}
        return {name: self.seconds[by_name[name]] if name in by_name else 0.0 for name in _DURATIONS}

    def page(self) -> bytes:
        """Return the page of the metrics port in Prometheus text format."""
        return page_of([*self._server(), *self._backend(), *self.histograms.values()])

    def _server(self) -> list[SampleSeries]:
        failures = _family(
            "nv_inference_request_failure", "Number of failed inference requests, all batch sizes", kind="counter"
        )
        for reason in _FAILURES:
            failures.set(self.aborts if reason == "CANCELED" else 0, reason=reason)
        counts = {
            "request_success": "Number of successful inference requests, all batch sizes",
            "count": "Number of inferences performed (does not include cached requests)",
            "exec_count": "Number of model executions performed (does not include cached requests)",
        }
        success, *others = (
            _value(f"nv_inference_{name}", text, value=self.finishes, kind="counter") for name, text in counts.items()
        )
        durations = [
            _value(
                f"nv_inference_{name}_duration_us",
                f"Cumulative {_DURATIONS[name]}",
                value=int(seconds * 1e6),
                kind="counter",
            )
            for name, seconds in self.durations().items()
        ]
        text = "Instantaneous number of pending requests awaiting execution per-model."
        pending = _value("nv_inference_pending_request_count", text, value=0)
        memory = [_value(name, text, value=0, labels={}) for name, text in _MEMORY.items()]
        return [success, failures, *others, *durations, pending, *memory]

    def _backend(self) -> list[SampleSeries]:
        assert self.engine is not None
        scheduler, blocks, step = self.engine.scheduler, self.engine.scheduler.blocks, self._step
        if not scheduler.running:
            step = _Step()
        used, waiting = self.engine.kv_blocks_used, len(scheduler.waiting)
        families: dict[tuple[str, str], dict[str, float]] = {
            ("request", "request_type"): {
                "active": scheduler.unfinished,
                "max": scheduler.limits.max_num_seqs,
                "scheduled": scheduler.running,
                "context": step.context,
                "waiting": waiting,
            },
            ("kv_cache_block", "kv_cache_block_type"): {
                "fraction": used / blocks.total,
                "tokens_per": blocks.block_size,
                "max": blocks.total,
                "free": blocks.total - used,
                "used": used,
            },
            ("inflight_batcher", "inflight_batcher_specific_metric"): {
                "paused_requests": step.paused,
                "total_context_tokens": step.context_tokens,
                "generation_requests": step.generating,
                "micro_batch_id": 0,
            },
            ("general", "general_type"): {"iteration_counter": self.steps, "timestamp": int(wall_clock())},
        }
        return [_family_of(name, label, values=values) for (name, label), values in families.items()]


def _family(name: str, text: str, *, kind: str) -> SampleSeries:
    return SampleSeries(name, text, kind=kind, labels=ENSEMBLE)


def _value(
    name: str, text: str, *, value: float, kind: str = "gauge", labels: Mapping[str, str] = ENSEMBLE
) -> SampleSeries:
    series = SampleSeries(name, text, kind=kind, labels=labels)
    series.set(value)
    return series


def _family_of(name: str, label: str, *, values: Mapping[str, float]) -> SampleSeries:
    titles = {"request": "request", "kv_cache_block": "KV cache block", "inflight_batcher": "inflight_batcher-specific"}
    text = f"TRT LLM {titles.get(name, name)} metrics"
    series = SampleSeries(f"nv_trt_llm_{name}_metrics", text, kind="gauge", labels=BACKEND)
    for key, value in values.items():
        series.set(value, **{label: key})
    return series
