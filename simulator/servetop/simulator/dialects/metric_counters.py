"""Counters and histograms of the simulated metrics pages, updated by the engine's events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.server.exposition import Histogram, Labels, SampleSeries
from servetop.simulator.server.realtime import RealTimeEngine


@dataclass(frozen=True, slots=True)
class Phases:
    """Phases of one request in seconds, up to its last token so far, and its token counts."""

    queue: float
    prefill: float
    decode: float
    inference: float
    """Prefill and decode."""
    ttft: float
    e2e: float
    per_token: float
    """Mean seconds per token after the first; 0 for a completion of one token."""
    prompt_tokens: int
    output_tokens: int
    max_tokens: int


def phases_of(seq: SimSequence, *, tokens: int) -> Phases:
    """Return the phases of a sequence that has emitted `tokens` tokens."""
    now = seq.emitted_at if seq.finished_at is None else seq.finished_at
    scheduled = seq.arrival if seq.scheduled_at is None else seq.scheduled_at
    first = now if seq.first_token_at is None else seq.first_token_at
    return Phases(
        queue=scheduled - seq.arrival,
        prefill=first - scheduled,
        decode=now - first,
        inference=now - scheduled,
        ttft=first - seq.arrival,
        e2e=now - seq.arrival,
        per_token=(now - first) / (tokens - 1) if tokens > 1 else 0.0,
        prompt_tokens=seq.prompt_tokens,
        output_tokens=tokens,
        max_tokens=seq.request.limit,
    )


class HistogramSpec(NamedTuple):
    """The definition of a histogram of finished requests: field of `Phases`, HELP text, upper bounds."""

    phase: str
    text: str
    bounds: tuple[float, ...]


class MetricCounters:
    """Totals since the server started: of emitted tokens, and of finished requests (`finished_…`)."""

    def __init__(self, specs: Mapping[str, HistogramSpec] | None = None, *, labels: Labels | None = None) -> None:
        self.engine: RealTimeEngine | None = None
        """The simulated engine, from which gauges are read; set when the server starts."""
        self._specs = specs or {}
        self.histograms = {
            name: Histogram(name, spec.text, bounds=spec.bounds, labels=labels or {})
            for name, spec in self._specs.items()
        }
        self.prompt_tokens = 0
        self.generated_tokens = 0
        self.steps = 0
        self.aborts = 0
        self.reasons: Counter[str] = Counter()
        """Finished requests by reason: `length` or `stop`."""
        self.finished_prompt_tokens = 0
        self.finished_output_tokens = 0
        self.cached_tokens = 0
        """Cached prompt tokens of finished requests (prefix cache)."""
        self.seconds: Counter[str] = Counter()
        """Summed phases of finished requests, in seconds."""

    @property
    def finishes(self) -> int:
        """The number of finished requests."""
        return sum(self.reasons.values())

    def stepped(self, _tokens: int, /) -> None:
        """Count an iteration."""
        self.steps += 1

    def emitted(self, count: int, *, due: float) -> None:  # noqa: ARG002
        """Count sent tokens."""
        self.generated_tokens += count

    def first(self, seq: SimSequence, _at: float, /) -> None:
        """Count the prompt tokens of a request at its first token."""
        self.prompt_tokens += seq.prompt_tokens

    def gap(self, _seconds: float, _count: int, /) -> None:
        """Ignore inter-token latencies; few engines export them."""

    def finished(self, seq: SimSequence, _at: float, /) -> None:
        """Add a finished request."""
        phases = phases_of(seq, tokens=seq.output_tokens)
        self.reasons["length" if seq.output_tokens >= seq.request.limit else "stop"] += 1
        self.finished_prompt_tokens += seq.prompt_tokens
        self.finished_output_tokens += seq.output_tokens
        self.cached_tokens += seq.cached_tokens
        for phase in ("queue", "prefill", "decode", "inference", "e2e", "per_token"):
            self.seconds[phase] += getattr(phases, phase)
        for name, spec in self._specs.items():
            self.histograms[name].observe(getattr(phases, spec.phase))

    def aborted(self) -> None:
        """Count a request whose client disconnected."""
        self.aborts += 1

    def page(self) -> bytes:
        """Return the metrics page in Prometheus text format; empty for an engine without metrics."""
        return b""


class Metric(NamedTuple):
    """A gauge or counter of a table: HELP text and current value."""

    text: str
    value: float
    kind: str = "gauge"


def series(table: Mapping[str, Metric], *, labels: Labels | None = None) -> list[SampleSeries]:
    """Return one series per name of the table."""
    result = []
    for name, metric in table.items():
        sample_series = SampleSeries(name, metric.text, kind=metric.kind, labels=labels or {})
        sample_series.set(metric.value)
        result.append(sample_series)
    return result


def page_of(parts: Iterable[SampleSeries | Histogram]) -> bytes:
    """Return a page in Prometheus text format, with the parts of one family under a single HELP and TYPE."""
    families: dict[str, dict[str, None]] = {}
    for part in parts:
        families.setdefault(part.name, {}).update(dict.fromkeys(part.lines()))
    return "".join(f"{line}\n" for lines in families.values() for line in lines).encode()
