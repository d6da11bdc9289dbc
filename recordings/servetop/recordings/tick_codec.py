"""A tick as a row: gauges, counters and the engine sample as columns, GPUs as JSON, histograms as blobs."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np
import orjson

from servetop.core.events import EngineSample, GpuSample
from servetop.core.histogram import EMPTY, MAX_BUCKET, LogHistogram
from servetop.core.tick import COUNTERS, HISTOGRAMS, ClientTick, LoadGauges, Tick
from servetop.recordings.codec import Column, Row, column_of, columns_of, decoded, encoded

_TOTAL = struct.Struct("<d")
_BUCKET = np.dtype("<u2")
_COUNT = np.dtype("<u4")
_BYTES_PER_BUCKET = _BUCKET.itemsize + _COUNT.itemsize


def pack_histogram(histogram: LogHistogram) -> bytes | None:
    """Total (float64), bucket numbers (uint16 each), counts (uint32 each), all little-endian; None when empty."""
    if not histogram.buckets.size:
        return None
    counts = np.minimum(histogram.counts, np.iinfo(_COUNT).max).astype(_COUNT)
    return _TOTAL.pack(histogram.total) + histogram.buckets.astype(_BUCKET).tobytes() + counts.tobytes()


def unpack_histogram(blob: bytes | None) -> LogHistogram:
    """What `pack_histogram` packed; ValueError when that is impossible."""
    if blob is None:
        return EMPTY
    size, rest = divmod(len(blob) - _TOTAL.size, _BYTES_PER_BUCKET)
    if size < 1 or rest:
        raise ValueError(f"a histogram cannot have {len(blob)} bytes")
    split = _TOTAL.size + size * _BUCKET.itemsize
    buckets = np.frombuffer(blob, _BUCKET, size, _TOTAL.size).astype(np.int32)
    if buckets[-1] > MAX_BUCKET:
        raise ValueError(f"a histogram has no bucket {buckets[-1]}")
    return LogHistogram(
        buckets,
        np.frombuffer(blob, _COUNT, size, split).astype(np.int64),
        _TOTAL.unpack_from(blob)[0],
    )


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
ENGINE = columns_of(EngineSample, prefix="engine_")
GPUS = Column("gpus", "TEXT", "gpus", pack_gpus, unpack_gpus)
DISTRIBUTIONS = tuple(Column(name, "BLOB", name, pack_histogram, unpack_histogram) for name in HISTOGRAMS)
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

    def decode(self, row: Row) -> Tick:
        """The tick, equal to the one that was encoded."""
        histograms: dict[str, Any] = {name: unpack_histogram(row.get(name)) for name in HISTOGRAMS}
        gauges = LoadGauges(**decoded(row, GAUGES))
        client = ClientTick(index=row["number"], gauges=gauges, **decoded(row, COUNTS), **histograms)
        sampled = row.get("engine_scrape_start") is not None
        engine = EngineSample(**decoded(row, ENGINE)) if sampled else None
        return Tick(client=client, engine=engine, gpus=unpack_gpus(row.get("gpus")))


TICKS = TickCodec()
