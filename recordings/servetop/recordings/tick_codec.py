"""A tick as a row: gauges, counters and the engine sample as columns, GPUs as JSON, histograms as blobs."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from servetop.core.events import EngineSample, GpuSample
from servetop.core.histogram import EMPTY, MAX_BUCKET, LogHistogram
from servetop.core.tick import COUNTERS, HISTOGRAMS, ClientTick, LoadGauges, Tick
from servetop.recordings.codec import Column, FieldReader, Row, column_of, columns_of, encoded

_TOTAL = struct.Struct("<d")
_RECORD = np.dtype([("bucket", "<u2"), ("count", "<u4")])


def pack_histogram(histogram: LogHistogram) -> bytes | None:
    """Total (float64), then 6 bytes a bucket: number (uint16), count (uint32); little-endian. None when empty."""
    if not histogram.buckets.size:
        return None
    records = np.empty(histogram.buckets.size, _RECORD)
    records["bucket"] = histogram.buckets
    records["count"] = np.minimum(histogram.counts, np.iinfo(np.uint32).max)
    return _TOTAL.pack(histogram.total) + records.tobytes()


def unpack_histograms(blobs: Sequence[bytes | None]) -> list[LogHistogram]:
    """What `pack_histogram` packed, many at once; ValueError when one of them is impossible."""
    sizes = [0 if blob is None else _buckets(len(blob)) for blob in blobs]
    records = np.frombuffer(b"".join(blob[_TOTAL.size :] for blob in blobs if blob is not None), _RECORD)
    buckets, counts = records["bucket"].astype(np.int32), records["count"].astype(np.int64)
    if buckets.size and buckets.max() > MAX_BUCKET:
        raise ValueError(f"a histogram has no bucket {buckets.max()}")
    ends = itertools.accumulate(sizes)
    return [
        EMPTY
        if blob is None
        else LogHistogram(buckets[end - size : end], counts[end - size : end], _TOTAL.unpack_from(blob)[0])
        for blob, size, end in zip(blobs, sizes, ends, strict=True)
    ]


def _buckets(length: int) -> int:
    size, rest = divmod(length - _TOTAL.size, _RECORD.itemsize)
    if size < 1 or rest:
        raise ValueError(f"a histogram cannot have {length} bytes")
    return size


def pack_gpus(gpus: tuple[GpuSample, ...]) -> str | None:
    """A JSON list of objects, one a device; None when there is none."""
    return orjson.dumps([dataclasses.asdict(gpu) for gpu in gpus]).decode() if gpus else None


def unpack_gpus(text: str | None) -> tuple[GpuSample, ...]:
    """What `pack_gpus` packed; unknown keys are ignored."""
    if text is None:
        return ()
    return tuple(
        GpuSample(**{key: value for key, value in gpu.items() if key in _GPU_FIELDS}) for gpu in orjson.loads(text)
    )


_GPU_FIELDS = frozenset(each.name for each in dataclasses.fields(GpuSample))

NUMBER = column_of("number", int, field="index")
GAUGES = columns_of(LoadGauges)
COUNTS = tuple(column_of(name, float if name == "cpu_seconds" else int) for name in COUNTERS)
ENGINE = tuple(dataclasses.replace(each, required=False) for each in columns_of(EngineSample, prefix="engine_"))
GPUS = Column("gpus", "TEXT", "gpus", pack_gpus, unpack_gpus)
DISTRIBUTIONS = tuple(Column(name, "BLOB", name, pack_histogram, None) for name in HISTOGRAMS)
_read_gauges, _read_counts, _read_engine = FieldReader(GAUGES), FieldReader(COUNTS), FieldReader(ENGINE)
_NO_ENGINE = (None,) * len(ENGINE)


class TickCodec:
    """Rows of table `tick`. The blobs come last, so that counters can be read without paging them in."""

    columns = (NUMBER, *GAUGES, *COUNTS, *ENGINE, GPUS, *DISTRIBUTIONS)

    def encode(self, event: Tick) -> tuple[Any, ...]:
        """The values of a row; a tick without an engine sample has NULL in all `engine_` columns."""
        return (
            event.client.index,
            *encoded(event.client.gauges, GAUGES),
            *encoded(event.client, COUNTS),
            *(_NO_ENGINE if event.engine is None else encoded(event.engine, ENGINE)),
            pack_gpus(event.gpus),
            *(pack_histogram(getattr(event.client, name)) for name in HISTOGRAMS),
        )

    def decode_all(self, rows: Sequence[Row]) -> list[Tick]:
        """The ticks, equal to those that were encoded; histograms are unpacked column by column, for speed."""
        columns = [unpack_histograms([row.get(name) for row in rows]) for name in HISTOGRAMS]
        return [
            self._tick(row, dict(zip(HISTOGRAMS, histograms, strict=True)))
            for row, histograms in zip(rows, zip(*columns, strict=True), strict=True)
        ]

    @staticmethod
    def _tick(row: Row, histograms: dict[str, Any]) -> Tick:
        gauges = LoadGauges(**_read_gauges(row))
        client = ClientTick(index=row["number"], gauges=gauges, **_read_counts(row), **histograms)
        sampled = row.get("engine_scrape_start") is not None
        engine = EngineSample(**_read_engine(row)) if sampled else None
        return Tick(client=client, engine=engine, gpus=unpack_gpus(row.get("gpus")))


TICKS = TickCodec()
