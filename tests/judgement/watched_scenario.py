"""Records simulated runs as `servetop watch` would: the engine's metrics once a second, and nothing of a client."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from servetop.analysis.fleet.server_episodes import EpisodeChange, ServerEpisodes
from servetop.analysis.summary.watch_types import WatchedLimit
from servetop.core.clock import ClockAnchor
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.watch_summary import watch_summary
from servetop.run.watch.watched_replica import SAMPLE_PERIOD
from servetop.run.watch.watched_rows import WatchedRows
from servetop.simulator.virtual_run.virtual_run import VirtualRun
from tests.judgement.counted_answers import CountedAnswers
from tests.recorded_watches import ONE

EVERY = round(SAMPLE_PERIOD / TICK_SECONDS)
"""Ticks between two pages, and between two looks at the growing recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedScenario:
    """What a watch said of a run while it lasted, and in its summary."""

    states: Sequence[tuple[float, str]]
    """The verdict of now, once a second."""
    reported: Sequence[tuple[float, EpisodeChange]]
    """The begins of its episodes, each with the time at which it was reported."""
    limits: Sequence[WatchedLimit]
    """The limits that the summary names."""
    headline: str


def watched(run: VirtualRun, path: Path, *, counts: CountedAnswers | None = None) -> WatchedScenario:
    """Record a run to a new file as a watch does, and return what is said of it; ValueError without an engine.

    `counts` are on its pages, if its server counts what it fails.
    """
    if run.header.engine is None:
        raise ValueError("nothing is known of the engine")
    recorder = Recorder.create(path, RunHeader(config=ONE, anchor=ClockAnchor.take()))
    rows, episodes = WatchedRows(path), ServerEpisodes()
    states: list[tuple[float, str]] = []
    reported: list[tuple[float, EpisodeChange]] = []
    for position, tick in enumerate(seen := watched_ticks(run, counts)):
        before = seen[position - 1].engine if position else None
        samples = [] if tick.engine is None or tick.engine is before else [tick.engine]
        if samples and before is None:  # a watch attaches with the first page
            recorder.set_engine(replace(run.header.engine, url=ONE.engine.url or ""))
        recorder.commit(TickTransaction(tick=tick, engine_samples=samples))
        if (position + 1) % EVERY == 0 and (new := rows.new()) is not None:
            at, servers = new
            states += [(at, row.state) for row in servers]
            reported += [(at, each) for each in episodes.changes(servers, at) if each.begins]
    rows.close()
    recorder.close(RunEnd(at=run.ticks[-1].end, exit_code=0, reason=""))
    with closing(RecordingReader.open(path)) as reader:
        summary = watch_summary(reader)
    limits = () if summary.watched is None else summary.watched.limits
    return WatchedScenario(states=states, reported=reported, limits=limits, headline=summary.headline)


def watched_ticks(run: VirtualRun, counts: CountedAnswers | None = None) -> list[Tick]:
    """Return the ticks of a watch that reads its first page with the first sample; nothing of a client or a GPU."""
    first = next((number for number, tick in enumerate(run.ticks) if tick.engine is not None), 0)
    pages = [run.ticks[max(number - (number - first) % EVERY, 0)].engine for number in range(len(run.ticks))]
    shown = pages if counts is None else [None if page is None else counts.on(page) for page in pages]
    return [Tick(client=ClientTick(index=number), engine=page) for number, page in enumerate(shown)]
