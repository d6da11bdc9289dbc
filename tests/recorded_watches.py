"""Finished recordings of a watch of one server, and of one of three."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.analysis.test_watched_signals import FACTS, ticks
from tests.tui import canned_fleet, test_fleet_state
from tests.watched_pages import paged_ticks, serving

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


def failing_ticks(failed: float, *, ended: float = 4.0) -> Sequence[Tick]:
    """Return a minute of a server that ends `ended` requests/s, of which it fails `failed`/s from second 20 to 40."""

    def counted(at: float) -> dict[str, float]:
        count = failed * (min(max(at, 20.0), 40.0) - 20.0) // 1
        return {**serving(at), "requests_ended_total": ended * at, "requests_failed_total": count}

    return paged_ticks(every=1.0, seconds=60.0, gauges=counted)


def watch_of_pages(
    path: Path,
    *,
    every: float,
    seconds: float,
    slow_from: float = math.inf,
    until: float | None = None,
    thresholds: Sequence[str] = (),
    hold: float = 10.0,
    counts_answers: bool = True,
) -> Path:
    """Write a watch of one server with a page of each `every` seconds, such as that of a Prometheus server.

    TTFT is up to 0.1 s, and from `slow_from` on from 0.5 to 1 s, while every fourth request fails, if the server
    `counts_answers` by status. From `until` on the server does not respond.
    """  # fmt: skip
    config = replace(ONE, thresholds=tuple(thresholds), watch=WatchConfig(hold=hold))
    recorder = Recorder.create(path, RunHeader(config=config, anchor=ClockAnchor.take()))
    recorder.set_engine(replace(FACTS, url="http://gpu7:8000", model="tiny"))
    newest = None
    for tick in paged_ticks(every=every, seconds=seconds, until=until):
        new = [tick.engine] if tick.engine is not None and tick.engine != newest else []
        newest = tick.engine if new else newest
        series = [_counted(each.scrape_end, slow_from=slow_from, answers=counts_answers) for each in new]
        recorder.commit(TickTransaction(tick=tick, engine_samples=new, engine_series=series))
    recorder.close(RunEnd(at=seconds, exit_code=0, reason=""))
    return path


def _counted(at: float, *, slow_from: float, answers: bool) -> SeriesScrape:
    """Return a page's histogram of TTFT and its answers, by two requests a second."""
    fast, failed = 2 * min(at, slow_from), max(at - slow_from, 0.0) / 2
    values = {f"vllm:time_to_first_token_seconds_bucket{{le={bound}}}": fast for bound in ("0.1", "0.5")}
    values |= {f"vllm:time_to_first_token_seconds_bucket{{le={bound}}}": 2 * at for bound in ("1", "+Inf")}
    if answers:
        values |= {"http_requests_total{status=2xx}": 2 * at - failed, "http_requests_total{status=5xx}": failed}
    return SeriesScrape(at=at, names="\n".join(values), numbers=pack_numbers(values.values()))


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
