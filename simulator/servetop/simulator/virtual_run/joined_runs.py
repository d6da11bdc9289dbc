"""Joins virtual runs of several engines to one, as a run that restarts its engine records it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from servetop.core.config import RunConfig
from servetop.core.events import RequestRecord
from servetop.core.tick import Tick
from servetop.simulator.virtual_run.virtual_run import VirtualRun


def joined(runs: Sequence[VirtualRun], config: RunConfig, *, begins: Sequence[float]) -> VirtualRun:
    """Return one run with the ticks of each part from the time at which it begins, seconds, a multiple of a tick.

    The parts have the times and the numbers of stages of the whole; the header has the last engine. `config` is
    that of the whole run.
    """
    ticks: list[Tick] = []
    records: list[RequestRecord] = []
    for run, begin in zip(runs, begins, strict=True):
        ticks += [tick for tick in run.ticks if tick.end > begin]
        records += [replace(record, id=number) for number, record in enumerate(run.records, start=len(records))]
    return replace(
        runs[-1],
        header=replace(runs[-1].header, config=config),
        ticks=tuple(ticks),
        stages=tuple(each for run in runs for each in run.stages),
        log_lines=tuple(each for run in runs for each in run.log_lines),
        records=tuple(records),
        replica_samples=tuple(
            each
            for run, begin in zip(runs, begins, strict=True)
            for each in run.replica_samples
            if each.scrape_start > begin
        ),
    )
