"""The summary of each server of a watch of several, by the rules of a server that is watched alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.exported.exported_summary import exported_summary
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.fleet.fleet_text import differences, names_text
from servetop.analysis.fleet.replica_rows import replica_history
from servetop.analysis.summary.engine_metrics import server_summary
from servetop.analysis.summary.watch_types import ReplicaWatch, WatchedFigures, WatchedLimit, WatchedServer
from servetop.analysis.summary.watched_figures import watch_headline, watched_figures
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.merged.sample_rows import SampleRow
from servetop.core.merged.tick_rows import TickRow
from servetop.core.same_fields import from_same_fields
from servetop.core.units import MS_PER_S
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.recordings.format import schema
from servetop.recordings.read.load_requests import load_timeline
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.slower_limits import slower_limits
from servetop.reports.summary.watch_rows import without_advice

_MOST_NAMED = 3
"""Servers with the same limits that are named one by one in the verdict."""


def replica_watches(reader: RecordingReader, run: RunColumns, record: RunRecord) -> tuple[ReplicaWatch, ...]:
    """Return the summary of each server that was listed, in the order in which they were; empty for a single one."""
    changes = _changes(reader)
    if not changes:
        return ()
    samples, rows, series = reader.replica_samples().by_replica(), reader.ticks().rows, _series(reader)
    facts = {number: known for number, each in changes.items() if (known := _facts(each)) is not None}
    differs = differences(facts)
    own = {
        number: _record_of(record, rows, samples.get(number, []), each, facts=facts.get(number))
        for number, each in changes.items()
    }
    slower = slower_limits(own, series)
    watches = [
        _replica_watch(
            own[number],
            run.with_samples(samples.get(number, [])),
            reader,
            changes=each,
            series=series.get(number),
            differs=differs.get(number),
        )
        for number, each in sorted(changes.items())
    ]
    return tuple(_with_limit(each, slower.get(each.replica)) for each in watches)


def _with_limit(replica: ReplicaWatch, limit: WatchedLimit | None) -> ReplicaWatch:
    """Return the summary of a server with one more limit, if there is one."""
    if replica.watched is None or limit is None:
        return replica
    figures = dataclasses.replace(replica.watched, limits=(*replica.watched.limits, limit))
    return dataclasses.replace(replica, watched=figures, headline=watch_headline(figures))


def replica_records(reader: RecordingReader, record: RunRecord) -> Iterator[tuple[str, RunRecord, ScrapeHistory]]:
    """Yield name, record and scrapes of each server that was listed, as if it was watched alone."""
    changes = _changes(reader)
    samples, rows, series = (
        reader.replica_samples().by_replica(),
        reader.ticks().rows if changes else (),
        _series(reader),
    )
    for number, each in sorted(changes.items()):
        own = _record_of(record, rows, samples.get(number, []), each, facts=_facts(each))
        yield each[-1].name, own, series.get(number, ScrapeHistory())


def replica_series(reader: RecordingReader) -> list[tuple[EngineFacts | None, ScrapeHistory]]:
    """Return the facts and the scrapes of each server that was listed, in their order."""
    changes, series = _changes(reader), _series(reader)
    return [(_facts(each), series.get(number, ScrapeHistory())) for number, each in sorted(changes.items())]


def _replica_watch(
    record: RunRecord,
    run: RunColumns,
    reader: RecordingReader,
    *,
    changes: Sequence[ReplicaChange],
    series: ScrapeHistory | None,
    differs: str | None,
) -> ReplicaWatch:
    figures, last, facts = watched_figures(record, run), changes[-1], record.header.engine
    server = server_summary(run, Period(), timeline=load_timeline(reader))
    return ReplicaWatch(
        replica=last.replica,
        name=last.name,
        url=last.url,
        state=last.state.value,
        reason=last.reason or last.not_ready,
        restarts=sum(each.state is ReplicaState.RESTARTED for each in changes),
        backend=None if facts is None else facts.name,
        version=None if facts is None else facts.version,
        model_id=None if facts is None else facts.model,
        differs=differs,
        headline=without_advice(last.reason) if figures is None and last.reason else watch_headline(figures),
        p90_ttft_ms=_ttft_p90(facts, series),
        server=from_same_fields(WatchedServer, server),
        watched=figures,
    )


def _record_of(
    record: RunRecord,
    rows: Sequence[TickRow],
    samples: Sequence[SampleRow],
    changes: Sequence[ReplicaChange],
    *,
    facts: EngineFacts | None,
) -> RunRecord:
    """Return what a watch of this server alone would have recorded."""
    history = replica_history(rows, samples, changes)
    fold = EpisodeFold(watched=True)
    fold.update(history, facts)
    header = dataclasses.replace(record.header, engine=facts)
    return dataclasses.replace(record, header=header, history=history, episodes=fold.episodes, replica_samples=())


def _facts(changes: Sequence[ReplicaChange]) -> EngineFacts | None:
    return next((facts for each in reversed(changes) if (facts := each.facts) is not None), None)


def _changes(reader: RecordingReader) -> dict[int, list[ReplicaChange]]:
    found: dict[int, list[ReplicaChange]] = {}
    for change in reader.stream(schema.REPLICA_CHANGE):
        found.setdefault(change.replica, []).append(change)
    return found


def _series(reader: RecordingReader) -> Mapping[int, ScrapeHistory]:
    found: dict[int, ScrapeHistory] = {}
    for scrape in reader.stream(schema.ENGINE_SERIES):
        if scrape.replica is not None:
            found.setdefault(scrape.replica, ScrapeHistory()).extend([scrape])
    return found


def _ttft_p90(facts: EngineFacts | None, series: ScrapeHistory | None) -> float | None:
    if facts is None or series is None:
        return None
    specs = [spec for spec in exported_metrics(facts) if spec.name == "TTFT"]
    found = exported_summary(specs, series, start=0.0) or ()
    return next((each.p90 * MS_PER_S for each in found if each.p90 is not None), None)


def fleet_headline(replicas: Sequence[ReplicaWatch], figures: WatchedFigures | None) -> str:
    """Return what limited which server, as in `gpu7: KV-bound for 1:12 of 5:00; 2 other servers reached no limit`."""
    return "; ".join(_headlines(replicas)) or watch_headline(figures)


def _headlines(replicas: Sequence[ReplicaWatch]) -> Iterator[str]:
    named = [each for each in replicas if _has_news(each)]
    by_limit: dict[tuple[str, ...], list[ReplicaWatch]] = {}
    for each in named:
        limits = () if each.watched is None else tuple(limit.name for limit in each.watched.limits)
        other = watch_headline(None) if each.watched is None else each.headline
        by_limit.setdefault(limits or (other,), []).append(each)
    for limits, alike in by_limit.items():
        if len(alike) <= _MOST_NAMED:
            yield from (f"{each.name}: {each.headline}" for each in alike)
        else:
            worst = sorted(alike, key=_seconds_limited, reverse=True)
            most = f", the longest {worst[0].headline}" if worst[0].watched and worst[0].watched.limits else ""
            yield f"{len(alike)} servers: {', '.join(limits)} ({names_text([each.name for each in worst])}){most}"
    if others := len(replicas) - len(named):
        noun = "server" if others == 1 else "servers"
        yield f"{others} {'other ' if named else ''}{noun} reached no limit"


def _seconds_limited(replica: ReplicaWatch) -> float:
    return 0.0 if replica.watched is None else sum(each.seconds for each in replica.watched.limits)


def _has_news(replica: ReplicaWatch) -> bool:
    watched = replica.watched
    return watched is None or bool(watched.limits) or not watched.judged or watched.seconds_without_metrics > 0
