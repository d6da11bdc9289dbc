"""Encodes a tick as a row: gauges, counters and engine sample as columns, GPUs as JSON, histograms as blobs."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from servetop.core.arrays import np
from servetop.core.events import EngineSample, GpuSample
from servetop.core.histogram import EMPTY, MAX_BUCKET, LogHistogram
from servetop.core.tick import COUNTERS, HISTOGRAMS, OPTIONAL_COUNTERS, ClientTick, LoadGauges, Tick
from servetop.recordings.format.merged_codec import MERGED_COLUMN, PEAK_COLUMNS
from servetop.recordings.format.row_codec import (
    Column,
    CountReader,
    RepeatedReader,
    RowBlock,
    RowValues,
    absent_columns,
    column_of,
    columns_of,
    encoded,
    together,
)
from servetop.recordings.format.tick_checksum import CHECKSUM, TickChecksum

_TOTAL, _TOTAL_BYTES = "<f8", 8
_MAX_TOTAL = 1e19
_RECORD, _RECORD_BYTES = [("bucket", "<u2"), ("count", "<u4")], 6


def pack_histogram(histogram: LogHistogram) -> bytes | None:
    """Return total (float64) and 6 bytes per bucket: number (uint16), count (uint32); little-endian. None if empty."""
    if histogram is EMPTY or not histogram.buckets.size:
        return None
    records = np.empty(histogram.buckets.size, _RECORD)
    records["bucket"] = histogram.buckets
    records["count"] = np.minimum(histogram.counts, np.iinfo(np.uint32).max)
    return np.array(histogram.total, _TOTAL).tobytes() + records.tobytes()


def unpack_histograms(blobs: Sequence[bytes | None]) -> list[LogHistogram]:
    """Reverse `pack_histogram` for many blobs at once; ValueError if one of them is invalid."""
    full = [blob for blob in blobs if blob is not None]
    if not full:
        return [EMPTY] * len(blobs)
    ends = _ends([len(blob) for blob in full])
    records = np.frombuffer(b"".join([blob[_TOTAL_BYTES:] for blob in full]), _RECORD)
    buckets, counts = records["bucket"], records["count"]  # with the file's integer types, which take half the memory
    if buckets.max() > MAX_BUCKET:
        raise ValueError(f"invalid histogram bucket {buckets.max()}")
    sums = np.frombuffer(b"".join([blob[:_TOTAL_BYTES] for blob in full]), _TOTAL)
    if not (np.abs(sums) <= _MAX_TOTAL).all():  # False for NaN
        raise ValueError("invalid sum of a histogram's values")
    totals = sums.tolist()
    unpacked = [
        LogHistogram(buckets[start:end], counts[start:end], total)
        for start, end, total in zip([0, *ends[:-1]], ends, totals, strict=True)
    ]
    remaining = iter(unpacked)
    return unpacked if len(full) == len(blobs) else [EMPTY if blob is None else next(remaining) for blob in blobs]


def _ends(lengths: Sequence[int]) -> list[int]:
    """Return where each blob's buckets end in the concatenation of all."""
    sizes, remainders = np.divmod(np.array(lengths) - _TOTAL_BYTES, _RECORD_BYTES)
    invalid = (sizes < 1) | (remainders != 0)
    if invalid.any():
        raise ValueError(f"a histogram cannot have {lengths[int(invalid.argmax())]} bytes")
    ends: list[int] = np.cumsum(sizes).tolist()
    return ends


def pack_gpus(gpus: tuple[GpuSample, ...]) -> str | None:
    """Return a JSON list with one object per device; None without devices."""
    return orjson.dumps([dataclasses.asdict(gpu) for gpu in gpus]).decode() if gpus else None


def unpack_gpus(text: str | None) -> tuple[GpuSample, ...]:
    """Reverse `pack_gpus`; unknown keys are ignored."""
    if text is None:
        return ()
    gpus = orjson.loads(text)
    if not isinstance(gpus, list) or not all(isinstance(gpu, dict) for gpu in gpus):
        raise ValueError("the GPUs of a tick are not a list of objects")
    return tuple(_gpu({key: value for key, value in gpu.items() if key in _GPU_TYPES}) for gpu in gpus)


def _gpu(fields: dict[str, Any]) -> GpuSample:
    for name, value in fields.items():
        if value is not None and (type(value) not in _GPU_TYPES[name] or value != value):
            raise ValueError(f"invalid GPU {name} {value!r:.40}")
        if type(value) is not str and value is not None and abs(value) > _MAX_TOTAL:
            raise ValueError(f"invalid GPU {name} {value!r:.40}")
    return GpuSample(**fields)


_GPU_TYPES: dict[str, tuple[type, ...]] = {
    name: (str,) if "str" in str(hint) else (int, float) for name, hint in typing.get_type_hints(GpuSample).items()
}

NUMBER = column_of("number", int, field="index")
GAUGES = columns_of(LoadGauges)
COUNTS = (
    *(column_of(name, float if name == "cpu_seconds" else int) for name in COUNTERS),
    *(column_of(name, int | None) for name in OPTIONAL_COUNTERS),
)
ENGINE = tuple(dataclasses.replace(each, required=False) for each in columns_of(EngineSample, prefix="engine_"))
GPUS = Column("gpus", "TEXT", "gpus", pack_gpus, unpack_gpus)
DISTRIBUTIONS = tuple(Column(name, "BLOB", name, pack_histogram, None) for name in HISTOGRAMS)
_read_gauges = RepeatedReader(LoadGauges, GAUGES)
_read_client = CountReader(ClientTick, COUNTS)
_read_engine = RepeatedReader(EngineSample, ENGINE)
_NO_ENGINE = (None,) * len(ENGINE)
_SCRAPE = tuple(each.name for each in ENGINE[:2])
"""Begin and end of the scrape."""


_COVERED = (NUMBER, MERGED_COLUMN, *GAUGES, *COUNTS, *ENGINE, *PEAK_COLUMNS, GPUS, *DISTRIBUTIONS)
_NO_PEAKS = (None,) * len(PEAK_COLUMNS)
_NEEDED = {each.name for each in (NUMBER, *GAUGES, *COUNTS, *ENGINE, GPUS, *DISTRIBUTIONS)}

_ABSENT = absent_columns(EngineSample, ENGINE)


class TickCodec:
    """Codec of table `tick`; the blobs are the last columns, so counters can be read without loading them."""

    columns = (*_COVERED, Column(CHECKSUM, "INTEGER", CHECKSUM, int, None))
    checksum = TickChecksum([("seq", "INTEGER"), *((column.name, column.sql_type) for column in columns)])
    """The checksum of a new file."""

    def encode(self, event: Tick) -> tuple[Any, ...]:
        """Return the values of a row; without an engine sample, all `engine_` columns are NULL."""
        values = self._values(event)
        return (*values, self.checksum.of((None, *values)))

    @staticmethod
    def _values(event: Tick) -> tuple[Any, ...]:
        return (
            event.client.index,
            None,
            *encoded(event.client.gauges, GAUGES),
            *encoded(event.client, COUNTS),
            *(_NO_ENGINE if event.engine is None else encoded(event.engine, ENGINE)),
            *_NO_PEAKS,
            pack_gpus(event.gpus),
            *(pack_histogram(getattr(event.client, name)) for name in HISTOGRAMS),
        )

    def decode_all(self, rows: Sequence[RowValues]) -> list[Tick]:
        """Decode ticks column by column, for speed; one by one if a column is missing."""
        if isinstance(rows, RowBlock) and (columns := rows.columns_with(_ABSENT)).keys() >= _NEEDED:
            return self._ticks(columns)
        columns = {name: tuple(row.get(name) for row in rows) for name in HISTOGRAMS}
        return [
            self._tick(row, histograms)
            for row, histograms in zip(rows, _distributions(columns, len(rows)), strict=True)
        ]

    @staticmethod
    def _ticks(columns: Mapping[str, Sequence[Any]]) -> list[Tick]:
        """Decode ticks of which each column of this version is known."""
        clients = [
            _read_client.of_values(counts, index=number, gauges=_read_gauges.of_values(gauges), **histograms)
            for number, gauges, counts, histograms in zip(
                columns[NUMBER.name],
                together(columns, GAUGES),
                together(columns, COUNTS),
                _distributions(columns, len(columns[NUMBER.name])),
                strict=True,
            )
        ]
        return [
            Tick(client=client, engine=_engine(values), gpus=() if gpus is None else unpack_gpus(gpus))
            for client, values, gpus in zip(clients, together(columns, ENGINE), columns[GPUS.name], strict=True)
        ]

    @staticmethod
    def _tick(row: RowValues, histograms: Mapping[str, LogHistogram]) -> Tick:
        client = _read_client(row, index=row["number"], gauges=_read_gauges(row), **histograms)
        engine = _read_engine(row) if _is_sampled(*map(row.get, _SCRAPE)) else None
        return Tick(client=client, engine=engine, gpus=unpack_gpus(row.get("gpus")))


def _engine(values: tuple[Any, ...]) -> EngineSample | None:
    """Return the sample of the values of all columns of the engine."""
    start, end = values[:2]
    return _read_engine.of_values(values) if _is_sampled(start, end) else None


def _is_sampled(start: float | None, end: float | None) -> bool:
    """Whether a tick has a sample that began then; ValueError if it has no end."""
    if start is not None and end is None:
        raise ValueError("the engine sample of a tick has no end")
    return start is not None


def _distributions(columns: Mapping[str, Sequence[bytes | None]], rows: int) -> Iterable[Mapping[str, LogHistogram]]:
    """Return the histograms of each row by name, without those that are empty in all rows."""
    found = {name: unpack_histograms(columns[name]) for name in HISTOGRAMS if columns[name].count(None) < rows}
    if not found:
        return [{}] * rows
    return (dict(zip(found, each, strict=True)) for each in zip(*found.values(), strict=True))


TICKS = TickCodec()
