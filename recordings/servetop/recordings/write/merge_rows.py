"""Merges rows of one table and one time into the last of them: counters as of then, gauges as mean and maximum."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from servetop.core.events import EngineSample
from servetop.core.tick import COUNTERS, HISTOGRAMS, TICK_SECONDS
from servetop.recordings.format.column_bounds import MOST_MERGED
from servetop.recordings.format.merged_codec import MERGED, PEAKS

Row = Mapping[str, Any]
"""Values of a row by the name of its column."""

STALE_SECONDS = 1.5
"""Age of a sample from which on its server is said not to respond."""
_GAP_SECONDS = 2.5
"""Between two samples of a server that responds: it is read once a second, or four times."""
_COUNTERS = tuple(
    each.name
    for each in dataclasses.fields(EngineSample)
    if each.name.endswith("_total") and each.name != "kv_blocks_total"
)
_MEANS = ("running", "waiting", "kv_blocks_used", "kv_usage")
_CONSTANT = ("kv_blocks_total", "max_num_seqs")
_GPU_MEANS = ("utilisation", "memory_used", "power", "temperature", "sm_clock", "memory_clock")
_WHOLE = frozenset({"memory_used"})


def merged_ticks(rows: Sequence[Row], before: Row | None) -> dict[str, Any] | None:
    """Return one row for several ticks of a watch; None if something happened in them, so that they are kept.

    `before` is the last tick before them; without one they are the first. What happened is a restart, another setting,
    or that a server began or ceased to respond.
    """
    if not 2 <= len(rows) <= MOST_MERGED or rows[-1]["number"] - rows[0]["number"] + 1 != len(rows):
        return None
    if any(row[MERGED] is not None or _has_client(row) for row in rows):
        return None
    ages = [_age(row) for row in rows]
    if len({age is None for age in ages}) > 1 or len({age > STALE_SECONDS for age in ages if age is not None}) > 1:
        return None
    if before is None or _changes([before, *rows], prefix="engine_"):
        return None
    gpus = _merged_gpus([row["gpus"] for row in rows])
    return {**rows[-1], **_gauges(rows, prefix="engine_"), "gpus": gpus, MERGED: len(rows)}


def merged_samples(rows: Sequence[Row], before: Row | None) -> dict[str, Any] | None:
    """Return one row for several samples of one server; None if they are kept, as in `merged_ticks`."""
    if not 2 <= len(rows) <= MOST_MERGED or any(row[MERGED] is not None for row in rows):
        return None
    ends = [row["scrape_end"] for row in rows]
    if any(later - earlier > _GAP_SECONDS for earlier, later in itertools.pairwise(ends)):
        return None
    if before is None or _changes([before, *rows], prefix=""):
        return None
    return {**rows[-1], **_gauges(rows, prefix=""), MERGED: len(rows)}


def merged_devices(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return one row for several samples of one GPU: means of what varies, and its counter as of the last."""
    if not 2 <= len(rows) <= MOST_MERGED or any(row[MERGED] is not None for row in rows):
        return None
    return {**rows[-1], **_means(rows, _GPU_MEANS), MERGED: len(rows)}


def merged_series(rows: Sequence[Row], names: str | None) -> dict[str, Any] | None:
    """Return the last of several scrapes of one server's series; without its names if `names` were in force before."""
    if not 2 <= len(rows) <= MOST_MERGED or any(row[MERGED] is not None for row in rows):
        return None
    given = [row["names"] for row in rows if row["names"] is not None]
    newest = given[-1] if given and given[-1] != names else None
    return {**rows[-1], "names": newest, MERGED: len(rows)}


def _has_client(row: Row) -> bool:
    return any(row[name] for name in (*COUNTERS, *HISTOGRAMS))


def _age(row: Row) -> float | None:
    """Return how old a tick's sample is at its end, in seconds; None without one."""
    end: float | None = row["engine_scrape_end"]
    return None if end is None else (row["number"] + 1) * TICK_SECONDS - end


def _changes(rows: Sequence[Row], *, prefix: str) -> bool:
    """Whether a counter fell, or began or ceased to be exported, or a setting changed."""
    for name in (*_COUNTERS, *_CONSTANT):
        values = [row[prefix + name] for row in rows]
        known = [value for value in values if value is not None]
        if known and len(known) < len(values):
            return True
        if name in _CONSTANT and len(set(known)) > 1:
            return True
        if name in _COUNTERS and any(later < value for value, later in itertools.pairwise(known)):
            return True
    return False


def _gauges(rows: Sequence[Row], *, prefix: str) -> dict[str, float | None]:
    """Return the means of the gauges by column, and the maxima of some."""
    merged = _means(rows, tuple(prefix + name for name in _MEANS))
    for name, column in PEAKS.items():
        known = [row[prefix + name] for row in rows if row[prefix + name] is not None]
        merged[column] = max(known) if known else None
    return merged


def _means(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in names:
        known = [row[name] for row in rows if row.get(name) is not None]
        mean = sum(known) / len(known) if known else None
        merged[name] = round(mean) if mean is not None and name in _WHOLE else mean
    return merged


def _merged_gpus(texts: Sequence[str | None]) -> str | None:
    """Merge the GPUs of ticks, each a JSON list; those of the last one if the devices are not the same in all."""
    lists = [orjson.loads(text) for text in texts if text is not None]
    if texts[-1] is None or len({tuple(each["index"] for each in devices) for devices in lists}) != 1:
        return texts[-1]
    merged = [{**of_one[-1], **_means(of_one, _GPU_MEANS)} for of_one in zip(*lists, strict=True)]
    return orjson.dumps(merged).decode()
