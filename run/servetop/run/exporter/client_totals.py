"""What the client counted since the start of the process: sums of the ticks and of the requests that ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from servetop.core.events import RequestRecord, RequestStatus, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, merge_client_ticks
from servetop.run.exporter import metric_registry as registry
from servetop.run.exporter.bucket_counts import bucket_counts
from servetop.run.exporter.live_metric import LiveMetric, MetricFamily, MetricSample

MOST_PENDING = 40
"""Ticks that are added up together, because adding one costs about as much as adding many: ten seconds."""
Labels = Mapping[str, str]
_TOKEN_HISTOGRAMS = {"input": "input_len", "output": "output_len"}


class ClientTotals:
    """Counters and histograms, which never fall; a histogram has a series for each engine and model of the run."""

    def __init__(self, *, streamed: bool) -> None:
        """Without `streamed` responses there is no time to the first chunk."""
        self._streamed = streamed
        self._labels: Labels = {}
        self._pending: list[ClientTick] = []
        self._sums: dict[tuple[tuple[str, str], ...], ClientTick] = {}
        self._warmups: set[int] = set()
        self._requests: Counter[tuple[RequestStatus, bool]] = Counter()
        self._tokens: Counter[tuple[str, bool]] = Counter()

    def set_labels(self, labels: Labels) -> None:
        """Count what follows under other labels, as after a restart of the engine with another model."""
        if self._labels and labels != self._labels:  # the ticks before the first engine have no load
            self._add_up()
        self._labels = labels

    def add(self, tick: ClientTick | None, requests: Sequence[RequestRecord], stages: Sequence[StageChange]) -> None:
        """Count a tick, the requests that ended in it, and remember which of the stages are warm-ups."""
        self._warmups.update(stage.index for stage in stages if stage.warmup)
        if tick is not None:
            self._pending.append(tick)
            if len(self._pending) >= MOST_PENDING:
                self._add_up()
        for request in requests:
            warmup = request.stage in self._warmups
            self._requests[request.status, warmup] += 1
            if request.status is RequestStatus.OK:
                self._tokens["input", warmup] += request.prompt_tokens
                self._tokens["output", warmup] += request.output_tokens

    def _add_up(self) -> None:
        if self._pending:
            key = tuple(self._labels.items())
            if key and () in self._sums:
                self._sums[key] = self._sums.pop(())
            ticks = [self._sums[key], *self._pending] if key in self._sums else self._pending
            self._sums[key] = merge_client_ticks(ticks, gauges=self._pending[-1].gauges)
            self._pending = []

    def families(self) -> Iterator[MetricFamily]:
        """Return the counters and histograms with their present values."""
        self._add_up()
        ticks = [*self._sums.values()] or [ClientTick(index=0)]
        whole = merge_client_ticks(ticks, gauges=ticks[-1].gauges)  # of one it is that one
        sums = [(dict(key), tick) for key, tick in self._sums.items() if key]
        for metric, name in registry.TICK_COUNTERS.items():
            value = getattr(whole, name)
            yield MetricFamily(metric=metric, samples=[] if value is None else [MetricSample(value=value)])
        yield from self._ended()
        for metric, name in registry.TICK_HISTOGRAMS.items():
            if not self._streamed and metric is registry.TTFT:
                continue
            of_each = [(labels, getattr(tick, name)) for labels, tick in sums]
            yield _histograms(metric, of_each if metric.labels else [({}, getattr(whole, name))])
        tokens = [
            ({**labels, registry.TOKEN_TYPE: kind}, getattr(tick, name))
            for labels, tick in sums
            for kind, name in _TOKEN_HISTOGRAMS.items()
        ]
        yield _histograms(registry.TOKEN_USAGE, tokens)

    def _ended(self) -> Iterator[MetricFamily]:
        """Return the counters of requests by status and of their tokens, those of warm-ups once there is one."""
        warmups = (False, True) if self._warmups else (False,)
        texts = {False: "false", True: "true"}
        yield MetricFamily(
            metric=registry.REQUESTS,
            samples=[
                MetricSample(
                    value=self._requests[status, warmup], labels={"status": status.value, "warmup": texts[warmup]}
                )
                for warmup in warmups
                for status in registry.STATUSES
            ],
        )
        yield MetricFamily(
            metric=registry.REQUEST_TOKENS,
            samples=[
                MetricSample(
                    value=self._tokens[kind, warmup], labels={registry.TOKEN_TYPE: kind, "warmup": texts[warmup]}
                )
                for warmup in warmups
                for kind in _TOKEN_HISTOGRAMS
            ],
        )


def _histograms(metric: LiveMetric, series: Sequence[tuple[Labels, LogHistogram]]) -> MetricFamily:
    samples = [
        MetricSample(value=bucket_counts(histogram, metric.bounds), labels=labels) for labels, histogram in series
    ]
    return MetricFamily(metric=metric, samples=samples)
