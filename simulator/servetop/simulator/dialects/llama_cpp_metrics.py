"""The `llamacpp:` metrics, with names, help texts and order as captured; output is counted when its request ends."""

from __future__ import annotations

from servetop.simulator.dialects.metric_counters import Metric, MetricCounters, page_of, series
from servetop.simulator.model.sim_request import SimSequence


class LlamaCppCounters(MetricCounters):
    """Counters of llama-server, including the busy slots of each decode."""

    def __init__(self) -> None:
        super().__init__()
        self._busy = 0
        self._longest = 0
        self._prompt_seconds = 0.0

    def stepped(self, tokens: int, /) -> None:
        """Count the iteration as one `llama_decode()` call."""
        super().stepped(tokens)
        self._busy += self.engine.scheduler.running if self.engine is not None else 0

    def first(self, seq: SimSequence, at: float, /) -> None:
        """Add the processing time of a prompt."""
        super().first(seq, at)
        self._prompt_seconds += at - (seq.arrival if seq.scheduled_at is None else seq.scheduled_at)

    def finished(self, seq: SimSequence, at: float, /) -> None:
        """Add a finished request."""
        super().finished(seq, at)
        self._longest = max(self._longest, seq.prompt_tokens + seq.output_tokens)

    def page(self) -> bytes:
        """Return the metrics page in Prometheus text format."""
        assert self.engine is not None
        prefill, decode = self._prompt_seconds, self.seconds["decode"]
        processed, scheduler = self.prompt_tokens - self.cached_tokens, self.engine.scheduler
        counters: dict[str, tuple[str, float]] = {
            "prompt_tokens_total": ("Number of prompt tokens processed, excluding cached tokens", processed),
            "prompt_tokens_cached_total": ("Number of prompt tokens reused from the cache", self.cached_tokens),
            "prompt_seconds_total": ("Total time spent processing prompts", prefill),
            "tokens_predicted_total": ("Number of generation tokens processed", self.finished_output_tokens),
            "tokens_predicted_seconds_total": ("Total time spent generating tokens", decode),
            "n_decode_total": (
                "Total number of llama_decode() calls, excluding speculative decoding and multimodal decoding",
                self.steps,
            ),
            "n_tokens_max": ("Largest observed sequence length (prompt + generation)", self._longest),
            "spec_decode_num_draft_tokens_total": ("Speculative: Total draft tokens generated", 0),
            "spec_decode_num_accepted_tokens_total": (
                "Speculative: Total draft tokens accepted by the target model",
                0,
            ),
            "spec_decode_num_drafts_total": ("Speculative: Total speculative decoding verification steps", 0),
        }
        gauges: dict[str, tuple[str, float]] = {
            "prompt_tokens_seconds": ("Average prompt throughput in tokens/s", _rate(processed, prefill)),
            "predicted_tokens_seconds": (
                "Average generation throughput in tokens/s",
                _rate(self.finished_output_tokens, decode),
            ),
            "requests_processing": ("Number of requests processing", scheduler.running),
            "requests_deferred": ("Number of requests deferred", len(scheduler.waiting)),
            "n_busy_slots_per_decode": (
                "Average number of busy slots per llama_decode() call",
                _rate(self._busy, self.steps),
            ),
        }
        table = {f"llamacpp:{name}": Metric(*pair, kind="counter") for name, pair in counters.items()}
        return page_of(series(table | {f"llamacpp:{name}": Metric(*pair) for name, pair in gauges.items()}))


def _rate(amount: float, per: float) -> float:
    return amount / per if per else 0.0
