"""For how long each of several watched servers was much slower than the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.fleet.slower_servers import SLOWER, STEP, PacedServer, slower_factors
from servetop.analysis.fleet.token_times import TokenTimes
from servetop.analysis.summary.watch_types import WatchedLimit


def slower_limits(records: Mapping[int, RunRecord], series: Mapping[int, ScrapeHistory]) -> dict[int, WatchedLimit]:
    """Return the time in which each server was slower, by number; `records` are those of a watch of it alone.

    Servers that never were are left out.
    """
    servers = [_compared(number, record, series[number]) for number, record in records.items() if number in series]
    until = max((record.until for record in records.values()), default=0.0)
    grid = np.arange(STEP, until + STEP / 2, STEP)
    if not servers or not grid.size:
        return {}
    found = {}
    for each, row in zip(servers, slower_factors(servers, grid), strict=True):
        slow = np.flatnonzero(row > 0)
        if slow.size:
            onset = float(grid[max(slow[0] - 1, 0)])
            found[each.number] = WatchedLimit(name=SLOWER, seconds=float(slow.size) * STEP, onset=onset)
    return found


def _compared(number: int, record: RunRecord, scrapes: ScrapeHistory) -> PacedServer:
    facts, times = record.header.engine, TokenTimes()
    times.follow(scrapes)
    group = None if facts is None else (facts.name, facts.version, facts.model)
    return PacedServer(number=number, group=group, times=times, history=record.history)
