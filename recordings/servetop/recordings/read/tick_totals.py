"""Sums over the ticks of a recording, read from an index within milliseconds for an hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servetop.core.tick import TICK_SECONDS
from servetop.recordings.format.column_bounds import MAX_RUN_SECONDS
from servetop.recordings.read.table_reader import TableReader

_LAST_TICK = round(MAX_RUN_SECONDS / TICK_SECONDS)
_MOST = 10**12
"""Maximum requests or tokens of a tick; larger values are treated as damage."""
_ENDED = "ok + errors + timeouts + cancelled + truncated"
_SANE = f"number BETWEEN 0 AND {_LAST_TICK} AND output_tokens BETWEEN 0 AND {_MOST} AND {_ENDED} BETWEEN 0 AND {_MOST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TickTotals:
    """Sums over the ticks of a run."""

    ticks_until: int
    """Index after the last tick."""
    requests: int
    """Ended requests."""
    max_bin_output_tokens: int
    """Output tokens of the busiest bin of `ticks_per_bin` ticks; bin 0 starts at second 0."""
    ticks_per_bin: int


def tick_totals(tables: TableReader, *, ticks_per_bin: int) -> TickTotals:
    """Read the sums over all ticks."""
    columns = ("coalesce(max(number) + 1, 0)", f"coalesce(sum({_ENDED}), 0)")
    ticks_until, requests = next(tables.rows("tick", columns, where=_SANE), (0, 0))
    (max_tokens,) = next(tables.rows(f"({_bins(ticks_per_bin)})", ("coalesce(max(tokens), 0)",)), (0,))
    return TickTotals(
        ticks_until=ticks_until, requests=requests, max_bin_output_tokens=max_tokens, ticks_per_bin=ticks_per_bin
    )


def output_tokens_by_bin(tables: TableReader, *, ticks_per_bin: int) -> Iterator[tuple[int, int]]:
    """Yield (bin, output tokens) for each bin of ticks with output; bin 0 starts at second 0."""
    for number, tokens in tables.rows(f"({_bins(ticks_per_bin)})", ("bin", "tokens")):
        yield int(number), int(tokens)


def _bins(ticks_per_bin: int) -> str:
    return f"SELECT number / {ticks_per_bin} AS bin, sum(output_tokens) AS tokens FROM tick WHERE {_SANE} GROUP BY bin"
