"""Several servers behind one run: what each told last, as rows of a table."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from operator import attrgetter

from servetop.core.events import ReplicaSample
from servetop.core.sanitize import sanitize_line
from servetop.core.source import EngineFacts
from servetop.tui import formats
from servetop.tui.lines import Row, fitted
from servetop.tui.printable import shortened

AWAY_AFTER = 3.0
"""Seconds without a sample after which a server counts as away."""
_LONGEST_URL = 40
_COLUMNS = ("run", "wait", "KV", "preempted", "tokens out")
_WIDTH = 11
_RATE_OVER = 5.0
"""Seconds that tokens/s are a mean of."""


class ReplicaHistory:
    """Everything that each server told; grows only."""

    def __init__(self) -> None:
        self._samples: dict[int, list[ReplicaSample]] = {}

    def fold(self, samples: Sequence[ReplicaSample]) -> None:
        """Take in what is new, in order of time."""
        for sample in samples:
            self._samples.setdefault(sample.replica, []).append(sample)

    def rows(self, facts: EngineFacts | None, at: float, width: int) -> list[Row]:
        """A heading, and a row for each server as of run time `at`; nothing where there is one server."""
        urls = () if facts is None else facts.replica_urls
        if not urls:
            return []
        wide = min(_LONGEST_URL, max(map(len, urls)))
        heading = f"{'replica':<{wide}}" + "".join(f"{name:>{_WIDTH}}" for name in _COLUMNS)
        return [
            fitted([(heading, "muted")], width),
            *(fitted(self._row(number, url, at, wide=wide), width) for number, url in enumerate(urls)),
        ]

    def _row(self, number: int, url: str, at: float, *, wide: int) -> Row:
        name = f"{shortened(sanitize_line(url), wide):<{wide}}"
        told = self._samples.get(number, [])
        count = bisect.bisect_right(told, at, key=attrgetter("scrape_end"))
        sample = told[count - 1] if count else None
        if sample is None or at - sample.scrape_end > AWAY_AFTER:
            return [(name, "strong"), ("  away" if sample else "  not heard of yet", "warn")]
        since = told[max(bisect.bisect_left(told, at - _RATE_OVER, key=attrgetter("scrape_end")), 0)]
        figures = (
            formats.count(sample.running),
            formats.count(sample.waiting),
            formats.percent(sample.kv_usage),
            formats.count(sample.preemptions_total),
            _rate(since, sample),
        )
        return [(name, "strong"), ("".join(f"{figure:>{_WIDTH}}" for figure in figures), "")]


def _rate(since: ReplicaSample, sample: ReplicaSample) -> str:
    before, after = since.generation_tokens_total, sample.generation_tokens_total
    seconds = sample.scrape_end - since.scrape_end
    if before is None or after is None or seconds <= 0 or after < before:
        return formats.UNKNOWN
    return f"{formats.count((after - before) / seconds)}/s"
