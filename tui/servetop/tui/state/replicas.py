"""The table of replicas: the latest metrics of each server behind one run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.analysis.series.paged_columns import PagedColumns
from servetop.analysis.series.scratch import Scratch
from servetop.core.events import ReplicaSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import TextRow, fitted, shortened

AWAY_AFTER = 3.0
"""Seconds without a sample after which a replica is shown as away."""
_LONGEST_URL = 40
_COLUMNS = ("run", "wait", "KV", "preempted", "tokens out")
_WIDTH = 11
_RATE_OVER = 5.0
"""Seconds over which tokens/s are averaged."""
_AT, _TOKENS = "scrape_end", "generation_tokens_total"
_FIELDS = (
    _AT,
    "scrape_start",
    "running",
    "waiting",
    "kv_usage",
    "kv_blocks_used",
    "kv_blocks_total",
    "max_num_seqs",
    "preemptions_total",
    _TOKENS,
)


class ReplicaHistory:
    """All samples of each replica, by number; grows only."""

    def __init__(self, scratch: Scratch | None = None) -> None:
        self._scratch = Scratch() if scratch is None else scratch
        self._columns: dict[int, PagedColumns] = {}

    def fold(self, samples: Sequence[ReplicaSample]) -> None:
        """Add samples, in order of time."""
        for sample in samples:
            columns = self._columns.setdefault(sample.replica, PagedColumns(_FIELDS, self._scratch))
            for name in _FIELDS:
                value = getattr(sample, name)
                columns.extend(name, [math.nan if value is None else value])
            columns.evict()

    def samples(self) -> list[ReplicaSample]:
        """Return the values of all samples that a judgement needs, in order of time."""
        found = []
        for replica, columns in self._columns.items():
            rows = zip(*(columns.column(name).tolist() for name in _FIELDS), strict=True)
            found += [_replica_sample(replica, dict(zip(_FIELDS, row, strict=True))) for row in rows]
        return sorted(found, key=lambda each: each.scrape_end)

    def newest(self, at: float) -> list[ReplicaSample]:
        """Return the newest sample of each replica as of run time `at`, by number; those without one are left out."""
        lasts = {number: columns.up_to(_AT, at) - 1 for number, columns in sorted(self._columns.items())}
        return [
            _replica_sample(number, _sample(self._columns[number], last)) for number, last in lasts.items() if last >= 0
        ]

    def rows(self, facts: EngineFacts | None, at: float, width: int) -> list[TextRow]:
        """Return a heading and one row per replica as of run time `at`; no rows for a single server."""
        urls = () if facts is None else facts.replica_urls
        if not urls:
            return []
        wide = min(_LONGEST_URL, max(map(len, urls)))
        heading = f"{'replica':<{wide}}" + "".join(f"{name:>{_WIDTH}}" for name in _COLUMNS)
        return [
            fitted([(heading, "muted")], width),
            *(fitted(self._row(number, url, at, wide=wide), width) for number, url in enumerate(urls)),
        ]

    def _row(self, number: int, url: str, at: float, *, wide: int) -> TextRow:
        name = f"{shortened(sanitize_line(url), wide):<{wide}}"
        columns = self._columns.get(number)
        last = -1 if columns is None else columns.up_to(_AT, at) - 1
        if columns is None or last < 0:
            return [(name, "strong"), ("  no sample yet", "warn")]
        sample = _sample(columns, last)
        if at - sample[_AT] > AWAY_AFTER:
            return [(name, "strong"), ("  away", "warn")]
        figures = (
            formats.count(sample["running"]),
            formats.count(sample["waiting"]),
            formats.percent(sample["kv_usage"]),
            formats.count(sample["preemptions_total"]),
            _rate(_sample(columns, columns.up_to(_AT, at - _RATE_OVER)), sample),
        )
        return [(name, "strong"), ("".join(f"{figure:>{_WIDTH}}" for figure in figures), "")]


def _replica_sample(replica: int, values: Mapping[str, float]) -> ReplicaSample:
    return ReplicaSample(replica=replica, **{name: _exported(value) for name, value in values.items()})


def _exported(value: float) -> Any:
    return None if math.isnan(value) else value


def _sample(columns: PagedColumns, position: int) -> dict[str, float]:
    return {name: columns.value(name, position) for name in _FIELDS}


def _rate(since: Mapping[str, float], sample: Mapping[str, float]) -> str:
    tokens = sample[_TOKENS] - since[_TOKENS]
    seconds = sample[_AT] - since[_AT]
    if math.isnan(tokens) or seconds <= 0 or tokens < 0:
        return formats.UNKNOWN
    return f"{formats.count(tokens / seconds)}/s"
