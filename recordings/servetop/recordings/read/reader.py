"""Reads a finished or growing recording: the `RunSource` of viewers, and the rows for summaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servetop.analysis.cells.stage_load import with_plan
from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.clock import MonotonicClock
from servetop.core.errors import RecordingError
from servetop.core.events import (
    Action,
    Command,
    EngineSample,
    GpuSample,
    LogLine,
    Note,
    RequestRecord,
    RunEnd,
    Severity,
    StageChange,
)
from servetop.core.interfaces.recording_store import RecordingResults
from servetop.core.interfaces.request_in_flight import MOST_IN_FLIGHT, RequestInFlight
from servetop.core.interfaces.run_source import RunHeader, RunUpdate
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.merged.sample_rows import SampleRows
from servetop.core.merged.tick_rows import TickRows
from servetop.core.tick import Tick
from servetop.recordings.format import schema
from servetop.recordings.format.column_bounds import valid_request_condition
from servetop.recordings.format.header import decode_end
from servetop.recordings.format.liveness import Writer
from servetop.recordings.format.reader_limits import MAX_STAGES
from servetop.recordings.format.request_codec import ENDED
from servetop.recordings.format.steady_codec import decode_windows
from servetop.recordings.read.damage import check_request_rows, find_losses
from servetop.recordings.read.open import OpenedFile, merge_log_of, open_for_reading
from servetop.recordings.read.polled_rows import PendingCommands, RecentRequests
from servetop.recordings.read.request_counts import CountsByStage
from servetop.recordings.read.run_header import decode_run_header, read_run_row
from servetop.recordings.read.send_command import write_command
from servetop.recordings.read.table_reader import TableReader
from servetop.recordings.read.tick_totals import TickTotals, output_tokens_by_bin, tick_totals

_END_COLUMNS = {"end_at", "exit_code", "end_reason", "steady", "headline"}


class RecordingReader:
    """One recording, opened for reading; not safe for concurrent use by several threads."""

    def __init__(self, opened: OpenedFile, path: Path) -> None:
        self.path = path
        self._opened = opened
        self._tables = TableReader(opened, path)
        self._recent = RecentRequests(self._tables)
        self._counts = CountsByStage(self._tables)
        self._run = read_run_row(self._tables, self.path)
        self._header = decode_run_header(self._run, self._tables, self.path)
        self._version: int | None = None
        self._polled: dict[str, Any] | None = None
        self._seen: dict[str, int] = {}
        self._commands = PendingCommands()
        self._reported: set[str] = set()

    @classmethod
    def open(cls, path: Path, *, examine: bool = True) -> RecordingReader:
        """Open a file; RecordingError if it is missing, not a recording, too new or unreadable.

        Unless the run is live, the file is searched for damage; `examine=False` skips that for long lists of files.
        """
        opened = open_for_reading(path)
        try:
            reader = cls(opened, path)
            if examine and not reader.is_live():
                find_losses(reader._tables, path, ended=reader.end is not None)
        except RecordingError:
            opened.release()
            raise
        return reader

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    @property
    def tables(self) -> TableReader:
        """The rows of all tables, which are not checked."""
        return self._tables

    @property
    def header(self) -> RunHeader:
        """The header as of the last poll or refresh."""
        return self._header

    @property
    def end(self) -> RunEnd | None:
        """The end of the run as of the last poll or refresh; None if it is still running or was killed."""
        return decode_end(self._run)

    @property
    def steady(self) -> dict[int, SteadyWindow]:
        """Steady windows by stage, stored at the run's end; empty before."""
        return {} if self.end is None else decode_windows(self._run["steady"])

    @property
    def damage(self) -> str | None:
        """One line on the damage found so far, and how much could be read; None without damage."""
        return self._tables.damage

    def poll(self, *, most_ticks: int | None = None) -> RunUpdate:
        """Return everything committed since the last call; cheap if there is nothing new.

        If at least `most_ticks` ticks are new, return `most_ticks` of them and nothing else.
        """
        version = self._tables.data_version()
        if version == self._version:
            return RunUpdate()
        with self._tables.snapshot():
            ticks = TickRows(self._new(schema.TICK, most=most_ticks))
            if most_ticks is not None and len(ticks) >= most_ticks:
                return RunUpdate(ticks=ticks, more=True)
            self._version = version
            self.refresh()
            before, self._polled = self._polled, self._run
            changed = {name for name, value in self._run.items() if before is None or before[name] != value}
            return RunUpdate(
                stages=self._limited(self._new(schema.STAGE)),
                skipped=self._new(schema.SKIPPED_CELL)[:MAX_STAGES],
                commands=self._commands.with_replies(self._tables, self._new(schema.COMMAND)),
                log_lines=self._new(schema.LOG_LINE),
                search_states=self._new(schema.SEARCH_STATE),
                ticks=ticks,
                replica_samples=SampleRows(self._new(schema.REPLICA_SAMPLE)),
                replica_changes=self._new(schema.REPLICA_CHANGE),
                engine_series=self._new(schema.ENGINE_SERIES),
                notes=[*self._new(schema.NOTE), *self._damage_note()],
                header=self._header if changed - _END_COLUMNS else None,
                end=self.end if "end_at" in changed else None,
            )

    def refresh(self) -> None:
        """Reload the header and the end; the next poll still reports them."""
        before, self._run = self._run, read_run_row(self._tables, self.path)
        if before != self._run:
            self._header = decode_run_header(self._run, self._tables, self.path)

    def is_live(self) -> bool:
        """Whether the run has not ended and its writer is alive."""
        writer = Writer.from_json(self._run["writer"]) if decode_end(self._run) is None else None
        return writer is not None and writer.is_alive()

    def send(self, action: Action, *, value: float | None = None, text: str = "", source: str = "keyboard") -> None:
        """Write a command for the run; RecordingError if the run is not live, or it cannot be written."""
        if not self.is_live():
            raise RecordingError(f"{self.name} is not running: it can be viewed, but not controlled")
        at = MonotonicClock(self.header.anchor.origin_ns).now()
        write_command(self.path, (at, str(action), value, text, source))

    def requests(
        self, start: float, until: float, *, ended_by: float = math.inf, most: int | None = None
    ) -> Sequence[RequestRecord]:
        """Return the ended requests that were in flight at any time between `start` and `until`, by due time."""
        where, parameters = f"{ENDED} BETWEEN ? AND ? AND sent <= ?", (start, ended_by, until)
        if most is not None:
            return self._recent.last(most, where=where, parameters=parameters)
        return list(self._tables.events(schema.REQUEST, where=where, parameters=parameters, order="due, seq"))

    def in_flight(self) -> list[RequestInFlight]:
        """Return the requests in flight as last written, by due time; empty after the end, and before format 1.7."""
        known = " AND ".join(f"{name} IS NOT NULL" for name in ("at", "id", "stage", "due"))
        order = f"seq LIMIT {MOST_IN_FLIGHT}"
        return [] if self.end is not None else self._tables.events(schema.IN_FLIGHT, where=known, order=order)

    def request_count(self) -> int:
        """Return the number of ended requests, of any status."""
        return next((int(row[0]) for row in self._tables.rows("request", ("count(*)",))), 0)

    def request_counts(self) -> Mapping[int, Mapping[str, int]]:
        """Return the numbers of ended requests by stage and status."""
        return self._counts.read(version=self._tables.data_version())

    def next_request(self) -> int:
        """Return the lowest id above those of all ended requests; several senders may leave gaps."""
        newest = next((row[0] for row in self._tables.rows("request", ("max(id)",))), None)
        return 0 if newest is None else int(newest) + 1

    def ticks(self) -> TickRows:
        """Return all ticks, independent of `poll`."""
        return TickRows(self._tables.events(schema.TICK))

    def past_ticks(self, first: int, last: int) -> list[Tick]:
        """Return the ticks with indexes `first` to `last`, inclusive."""
        return self._tables.past_ticks(first, last)

    def stages(self) -> list[StageChange]:
        """Return all stages, in order."""
        return self._limited(self._tables.events(schema.STAGE))

    def skipped_cells(self) -> list[SkippedCell]:
        """Return the cells of a sweep whose row had ended, in order; empty before format 1.16."""
        return self._tables.events(schema.SKIPPED_CELL)[:MAX_STAGES]

    def notes(self) -> list[Note]:
        """Return all notes, in order."""
        return self._tables.events(schema.NOTE)

    def commands(self) -> list[Command]:
        """Return all commands, in order."""
        return self._tables.events(schema.COMMAND)

    def log_lines(self) -> list[LogLine]:
        """Return the lines of the engine's log, in order."""
        return self._tables.events(schema.LOG_LINE)

    def engine_samples(self) -> list[EngineSample]:
        """Return all scrapes of the engine's metrics, in order."""
        return self._tables.events(schema.ENGINE_SAMPLE)

    def replica_samples(self) -> SampleRows:
        """Return all scrapes of each of several servers, in order; empty with one server."""
        return SampleRows(self._tables.events(schema.REPLICA_SAMPLE))

    def engine_series(self) -> list[SeriesScrape]:
        """Return all scrapes of the engine page's series, without those of one of several watched servers, in order."""
        return [each for each in self._tables.events(schema.ENGINE_SERIES) if each.replica is None]

    def stored(self, table: schema.EventTable) -> list[Any]:
        """Return the rows of a table in order, a merged sample or tick as one that knows how many it stands for."""
        return self._tables.stored(table)

    def gpu_samples(self) -> list[GpuSample]:
        """Return all GPU samples, in order."""
        return self._tables.events(schema.GPU_SAMPLE)

    def request_rows(
        self, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Stream raw rows of table `request` in the order in which they were written, up to damage."""
        condition = valid_request_condition(names := self._tables.or_null("request", columns))
        condition = f"({where}) AND {condition}" if where else condition
        return self._tables.rows("request", names, where=condition, parameters=parameters)

    def stream(self, table: schema.EventTable, *, where: str = "", parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the events of a table in the order of writing; memory does not grow with their number."""
        return self._tables.streamed(table, where=where, parameters=parameters)

    def check_requests(self) -> None:
        """Record invalid rows of table `request` as damage; sums and statistics omit them."""
        check_request_rows(self._tables)

    def tick_totals(self, *, ticks_per_bin: int) -> TickTotals:
        """Return sums over all ticks, read from an index within milliseconds for an hour."""
        return tick_totals(self._tables, ticks_per_bin=ticks_per_bin)

    def quick_results(self) -> RecordingResults:
        """Return the main results of the run as far as they are read within milliseconds."""
        from servetop.recordings.read.quick_results import quick_results  # needs NumPy

        return quick_results(self._tables, self.header, self.stages(), requests=self.request_count())

    def output_tokens_by_bin(self, *, ticks_per_bin: int) -> Iterator[tuple[int, int]]:
        """Yield (bin, output tokens) for each bin of ticks with output, from an index; bin 0 starts at second 0."""
        return output_tokens_by_bin(self._tables, ticks_per_bin=ticks_per_bin)

    def close(self, *, merge_log: bool = True) -> None:
        """Close the file; with `merge_log`, merge the write-ahead log of a finished run into it."""
        ended = merge_log and not self._opened.in_memory and (self.end is not None or self._writer_is_gone())
        self._opened.release()
        if ended and self._opened.scratch is None and self.damage is None:
            merge_log_of(self.path)

    def _writer_is_gone(self) -> bool:
        writer = Writer.from_json(self._run["writer"])
        return writer is not None and writer.is_here() and not writer.is_alive()

    def _new(self, table: schema.EventTable, *, most: int | None = None) -> list[Any]:
        events, self._seen[table.name] = self._tables.events_after(table, self._seen.get(table.name, 0), most=most)
        return events

    def _limited(self, stages: list[StageChange]) -> list[StageChange]:
        """Return at most MAX_STAGES stages, because statistics are computed for each; older ones with their plan."""
        if len(stages) > MAX_STAGES:
            self._tables.record_damage(f"it has more than {MAX_STAGES} stages")
        return [with_plan(stage, self._header.config.stages) for stage in stages[:MAX_STAGES]]

    def _damage_note(self) -> list[Note]:
        """Return a note on newly found damage, at the end of the ticks."""
        if self.damage is None or self.damage in self._reported:
            return []
        self._reported.add(self.damage)
        at = self._tables.last_tick_end or 0.0
        return [Note(at=at, severity=Severity.ERROR, source="recorder", text=self.damage)]
