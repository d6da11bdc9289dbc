"""Reads what the judgement of a recorded run is computed from."""

from __future__ import annotations

from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import RunEnd
from servetop.core.merged.tick_rows import TickRows
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.failure_metrics import failure_reasons


def recorded_run(reader: RecordingReader, *, ticks: TickRows | None = None, end: RunEnd | None = None) -> RunRecord:
    """Return what a recording contains for its judgement; `ticks` are all of its ticks, if they are read already.

    `end` is the end of a run, if it is not recorded yet.
    """
    reader.refresh()
    header, history = reader.header, TickHistory(reader.ticks() if ticks is None else ticks)
    fold = EpisodeFold(streamed=header.config.workload.stream, watched=header.config.watch is not None)
    fold.update_log(reader.log_lines())
    stages = reader.stages()
    fold.update(history, header.engine, stages=stages)
    several = header.engine is not None and len(header.engine.replica_urls) > 1 and header.config.watch is None
    return RunRecord(
        header=header,
        history=history,
        episodes=fold.episodes,
        stages=stages,
        notes=reader.notes(),
        end=end or reader.end,
        failure=next((each.reason for each in failure_reasons(reader, Selection())), ""),
        replica_samples=reader.replica_samples() if several else (),
    )
