"""Codecs of the tables in which a watch merges rows, with the columns of a merged row; they are NULL in all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from servetop.core.events import EngineSample, GpuSample, ReplicaSample
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.recordings.format.row_codec import Column, FlatCodec, column_of, encoded

_Event = TypeVar("_Event")

MERGED = "merged"
"""How many rows a row stands for, including itself: it is the last of them."""
PEAKS = {"running": "running_max", "waiting": "waiting_max", "kv_usage": "kv_usage_max"}
"""The column with the maximum of a gauge over the merged rows, by the field that is their mean."""

MERGED_COLUMN = column_of(MERGED, int | None)
PEAK_COLUMNS = tuple(column_of(name, float | None) for name in PEAKS.values())


class MergedCodec(FlatCodec[_Event], Generic[_Event]):
    """Codec of a flat event with further columns, which are last and NULL in a new row."""

    def __init__(
        self, kind: type[_Event], *, further: tuple[Column, ...], renamed: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(kind, renamed=renamed)
        self._nulls = (None,) * len(further)
        self.columns = (*self.columns, *further)

    def encode(self, event: _Event) -> tuple[Any, ...]:
        """Return the values of a row that stands for itself alone."""
        return (*encoded(event, self._own), *self._nulls)


_SAMPLE = (MERGED_COLUMN, *PEAK_COLUMNS)
ENGINE_SAMPLES = MergedCodec(EngineSample, further=_SAMPLE)
REPLICA_SAMPLES = MergedCodec(ReplicaSample, further=_SAMPLE)
SERIES_SCRAPES = MergedCodec(SeriesScrape, further=(MERGED_COLUMN,))
GPU_SAMPLES = MergedCodec(GpuSample, further=(MERGED_COLUMN,), renamed={"index": "device"})
