"""The `tgi_…` metrics of Text Generation Inference.

Names: huggingface/text-generation-inference, `router/src/server.rs`, `backends/v3/src`; its counters do not end in
`_total`. Durations have TGI's buckets, lengths have coarser ones.
"""

from __future__ import annotations

from servetop.simulator.dialects.metric_counters import HistogramSpec, Metric, MetricCounters, page_of, series
from servetop.simulator.server.exposition import Histogram, SampleSeries

_SECONDS = tuple(0.00015 * 1.5**power for power in range(35))
_LENGTHS = tuple(float(2**power) for power in range(16))
_SIZES = tuple(float(size) for size in range(1, 1025))
_HISTOGRAMS = {
    "tgi_request_duration": HistogramSpec("e2e", "Request duration", _SECONDS),
    "tgi_request_queue_duration": HistogramSpec("queue", "Time spent in the queue per request", _SECONDS),
    "tgi_request_inference_duration": HistogramSpec("inference", "Request inference duration", _SECONDS),
    "tgi_request_mean_time_per_token_duration": HistogramSpec("per_token", "Mean time per token per request", _SECONDS),
    "tgi_request_generated_tokens": HistogramSpec("output_tokens", "Generated tokens per request", _LENGTHS),
}


class TgiCounters(MetricCounters):
    """Counters of TGI, including batches by `method` (prefill of a new batch, or decode)."""

    def __init__(self) -> None:
        super().__init__(_HISTOGRAMS)
        self.requests = 0
        self.failures = SampleSeries("tgi_request_failure", "Number of failed requests", kind="counter", labels={})
        self.accepted = {
            name: Histogram(name, text, bounds=_LENGTHS, labels={})
            for name, text in (
                ("tgi_request_input_length", "Input token length per request"),
                ("tgi_request_max_new_tokens", "Maximum new tokens per request"),
            )
        }
        self.accepted["tgi_request_validation_duration"] = Histogram(
            "tgi_request_validation_duration", "Time spent validating the request", bounds=_SECONDS, labels={}
        )
        self.next_size = Histogram("tgi_batch_next_size", "Batch size of the next batch", bounds=_SIZES, labels={})
        self.batches = {
            name: SampleSeries(f"tgi_batch_inference_{name}", f"Batches of a method: {name}", kind="counter", labels={})
            for name in ("count", "success")
        }
        self.durations = [
            Histogram(
                f"tgi_batch_{name}_duration", f"Batch {name} duration", bounds=_SECONDS, labels={"method": method}
            )
            for method in ("prefill", "decode")
            for name in ("inference", "forward")
        ]

    def stepped(self, tokens: int, /) -> None:
        """Count an iteration as a TGI batch: a prefill of new requests, or a decode of all running ones."""
        super().stepped(tokens)
        if self.engine is None or self.engine.work is None:
            return
        work, seconds = self.engine.work, self.engine.step_seconds
        method = "prefill" if work.chunks else "decode"
        if work.chunks:
            self.next_size.observe(len(work.chunks))
        for counter in self.batches.values():
            counter.add(1.0, method=method)
        for histogram in self.durations[:2] if method == "prefill" else self.durations[2:]:
            histogram.observe(seconds)

    def refused(self, error_type: str) -> None:
        """Count a rejected request."""
        self.failures.add(1.0, err=error_type)

    def page(self) -> bytes:
        """Return the metrics page; like TGI, it omits unused metrics: at the start there is only the token budget."""
        assert self.engine is not None
        scheduler = self.engine.scheduler
        block, total = scheduler.blocks.block_size, scheduler.blocks.total
        table = {"tgi_batch_max_total_tokens": Metric("Maximum tokens of a batch", total * block)}
        if self.requests:
            table |= {
                "tgi_request_count": Metric("Total number of requests", self.requests, "counter"),
                "tgi_queue_size": Metric("Current number of requests in the queue", len(scheduler.waiting)),
                "tgi_batch_current_size": Metric("Current batch size", scheduler.running),
                "tgi_batch_current_max_tokens": Metric("Tokens reserved", self.engine.kv_blocks_used * block),
            }
        if self.finishes:
            table["tgi_request_success"] = Metric("Number of successful requests", self.finishes, "counter")
        counters = [each for each in (self.failures, *self.batches.values()) if each.used]
        histograms = (*self.histograms.values(), *self.accepted.values(), self.next_size, *self.durations)
        return page_of([*series(table), *counters, *(each for each in histograms if each.count)])
