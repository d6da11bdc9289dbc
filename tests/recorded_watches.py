"""Finished recordings of a watch of one server, and of one of three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.analysis.test_watched_signals import FACTS, ticks
from tests.tui import canned_fleet, test_fleet_state

ONE = RunConfig(engine=EngineConfig(name="auto", model="", url="http://gpu7:8000"), watch=WatchConfig())


def watch_of_one(path: Path, recorded: Sequence[Tick] | None = None, *, thresholds: Sequence[str] = ()) -> Path:
    """Write a watch of one server with these ticks; without any, its queue lasts from second 20 to second 40."""
    found = ticks(waiting=30.0) if recorded is None else recorded
    header = RunHeader(config=replace(ONE, thresholds=tuple(thresholds)), anchor=ClockAnchor.take())
    recorder = Recorder.create(path, header)
    recorder.set_engine(replace(FACTS, url="http://gpu7:8000", model="tiny"))
    for tick in found:
        samples = [] if tick.engine is None else [tick.engine]
        recorder.commit(TickTransaction(tick=tick, engine_samples=samples))
    recorder.close(RunEnd(at=found[-1].end, exit_code=0, reason=""))
    return path


def watch_of_three(path: Path, *, thresholds: Sequence[str] = ()) -> Path:
    """Write a watch of gpu0, which is full from second 20 on, gpu1, gone from second 40 on, and gpu2."""
    fleet = canned_fleet.fleet()
    header = RunHeader(config=replace(canned_fleet.CONFIG, thresholds=tuple(thresholds)), anchor=ClockAnchor.take())
    recorder = Recorder.create(path, header)
    recorder.set_engine(replace(test_fleet_state.FACTS, replica_urls=canned_fleet.URLS))
    for tick in fleet.ticks:
        recorder.commit(TickTransaction(tick=tick, engine_samples=[] if tick.engine is None else [tick.engine]))
    samples, changes = test_fleet_state.SAMPLES, test_fleet_state.CHANGES
    rows = TickTransaction(
        replica_samples=samples, replica_changes=changes, engine_series=canned_fleet.scrapes(), notes=canned_fleet.NOTES
    )
    recorder.commit(rows)
    recorder.close(RunEnd(at=fleet.ticks[-1].end, exit_code=0, reason=""))
    return path
