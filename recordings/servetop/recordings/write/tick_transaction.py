"""The data that one tick adds to a recording, as events and as SQL statements with rows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from servetop.core.events import (
    Command,
    EngineSample,
    GpuSample,
    LogLine,
    Note,
    ReplicaSample,
    RequestRecord,
    StageChange,
)
from servetop.core.interfaces.replica_change import ReplicaChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.search_state import SearchState
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.text.encodable import encodable
from servetop.core.text.redaction import Redactor
from servetop.core.tick import Tick
from servetop.recordings.format import schema
from servetop.recordings.format.tick_checksum import TickChecksum
from servetop.recordings.format.tick_codec import TICKS

_SET_REPLY = "UPDATE command SET obeyed_at = ?, reply = ? WHERE seq = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class TickTransaction:
    """The events of one tick, written in one transaction or not at all."""

    tick: Tick | None = None
    requests: Sequence[RequestRecord] = ()
    """Requests that ended during the tick."""
    in_flight: Sequence[RequestInFlight] | None = None
    """Requests in flight, in place of those written before; None: unchanged."""
    engine_samples: Sequence[EngineSample] = ()
    replica_samples: Sequence[ReplicaSample] = ()
    replica_changes: Sequence[ReplicaChange] = ()
    engine_series: Sequence[SeriesScrape] = ()
    gpu_samples: Sequence[GpuSample] = ()
    stages: Sequence[StageChange] = ()
    skipped: Sequence[SkippedCell] = ()
    notes: Sequence[Note] = ()
    log_lines: Sequence[LogLine] = ()
    search_states: Sequence[SearchState] = ()
    commands: Sequence[Command] = ()
    """Applied commands, whose rows are updated with `applied_at` and `reply`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """The encoded rows of one transaction, which can be retried until it succeeds."""

    statements: Sequence[tuple[str, Sequence[tuple[Any, ...]]]]
    """SQL statements, each with its rows of parameters."""
    ticks: int = 0
    requests: int = 0

    @property
    def rows(self) -> int:
        """The number of rows, a measure of memory use."""
        return sum(len(rows) for _, rows in self.statements)


def encode_batch(
    batch: TickTransaction, *, redactor: Redactor, checksum: TickChecksum = TICKS.checksum
) -> EncodedBatch:
    """Encode rows for every table with new events, and redact free texts.

    `checksum` is that of the file, because a resumed file may have another column order.
    """
    events: tuple[tuple[schema.EventTable, Sequence[Any]], ...] = (
        (schema.STAGE, [_redacted_stage(each, redactor) for each in batch.stages]),
        (schema.SKIPPED_CELL, [_redacted_cell(each, redactor) for each in batch.skipped]),
        (schema.REQUEST, [_redacted(each, redactor) for each in batch.requests]),
        (schema.IN_FLIGHT, batch.in_flight or ()),
        (schema.ENGINE_SAMPLE, batch.engine_samples),
        (schema.REPLICA_SAMPLE, batch.replica_samples),
        (schema.REPLICA_CHANGE, [_redacted_change(each, redactor) for each in batch.replica_changes]),
        (schema.ENGINE_SERIES, batch.engine_series),
        (schema.GPU_SAMPLE, batch.gpu_samples),
        (schema.NOTE, [dataclasses.replace(note, text=redactor.sentence(note.text)) for note in batch.notes]),
        (schema.LOG_LINE, [dataclasses.replace(line, text=redactor.text(line.text)) for line in batch.log_lines]),
        (schema.SEARCH_STATE, [_redacted_search(each, redactor) for each in batch.search_states]),
    )
    statements = [(table.insert, [table.codec.encode(each) for each in rows]) for table, rows in events if rows]
    if batch.in_flight is not None:
        statements.insert(0, (schema.FORGET_IN_FLIGHT, [()]))
    if batch.tick is not None:
        statements.append((schema.TICK.insert, [_tick_row(batch.tick, checksum)]))
    if batch.commands:
        replies = [each.reply and encodable(redactor.sentence(each.reply)) for each in batch.commands]
        rows = [(each.applied_at, reply, each.id) for each, reply in zip(batch.commands, replies, strict=True)]
        statements.append((_SET_REPLY, rows))
    return EncodedBatch(statements=statements, ticks=0 if batch.tick is None else 1, requests=len(batch.requests))


def _tick_row(tick: Tick, checksum: TickChecksum) -> tuple[Any, ...]:
    row = TICKS.encode(tick)
    if checksum.names == TICKS.checksum.names:
        return row
    values = dict(zip(schema.TICK.names, row, strict=True))
    return (*row[:-1], checksum.of([values.get(name) for name in checksum.names]))


def _redacted(request: RequestRecord, redactor: Redactor) -> RequestRecord:
    return request if request.error is None else dataclasses.replace(request, error=redactor.text(request.error))


def _redacted_change(change: ReplicaChange, redactor: Redactor) -> ReplicaChange:
    engine = None if change.engine is None else json.dumps(redactor.data(json.loads(change.engine)))
    name, url, reason = redactor.text(change.name), redactor.text(change.url), redactor.sentence(change.reason)
    return dataclasses.replace(change, name=name, url=url, reason=reason, engine=engine)


def _redacted_stage(stage: StageChange, redactor: Redactor) -> StageChange:
    failure = None if stage.failure is None else redactor.sentence(stage.failure)
    return dataclasses.replace(stage, label=redactor.text(stage.label), failure=failure)


def _redacted_search(state: SearchState, redactor: Redactor) -> SearchState:
    answers = tuple(dataclasses.replace(each, text=redactor.sentence(each.text)) for each in state.answers)
    return dataclasses.replace(state, answers=answers)


def _redacted_cell(cell: SkippedCell, redactor: Redactor) -> SkippedCell:
    return dataclasses.replace(cell, label=redactor.text(cell.label), reason=redactor.sentence(cell.reason))
