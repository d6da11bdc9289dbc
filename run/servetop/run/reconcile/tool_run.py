"""Reads one side of a reconciliation: a recording, or a result of another load generator."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.analysis.reconciliation.waterfall import ReconciledRun
from servetop.core.clock import ClockAnchor
from servetop.core.errors import RecordingError, UsageError
from servetop.core.events import RequestRecord
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.text.counted import counted
from servetop.recordings.library.catalog import resolve
from servetop.recordings.library.paths import SUFFIX
from servetop.recordings.read.reader import RecordingReader
from servetop.run.audit.request_match import MatchedBy, match_requests
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.record_import import IMPORTED
from servetop.run.imports.reported_figures import DURATION
from servetop.run.imports.result_file import read_results

OWN = "servetop"
_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolRun:
    """What one load generator measured, and where that was read."""

    file: str
    tool: str
    version: str | None
    requests: Sequence[RequestRecord]
    """Those that were sent, without warm-ups, in order of sending."""
    anchor: ClockAnchor
    """The client's clock at second 0; a part that is unknown is 0."""
    times_known: bool
    closed: bool
    concurrency: int | None
    reported: Mapping[str, float]
    remarks: Sequence[str] = ()

    def compared(self, truth: ToolRun | None = None) -> ReconciledRun:
        """Return the run for its reconciliation, with the server's times of `truth` if its requests can be matched."""
        rows = ClientRows.of(self.requests, duration=self.reported.get(DURATION), times_known=self.times_known)
        if truth is not None:
            rows = rows.with_server(ClientRows.of(_matched(self, truth)))
        return ReconciledRun(
            tool=self.tool, rows=rows, reported=self.reported, closed=self.closed, concurrency=self.concurrency
        )


def read_tool_run(name: str) -> ToolRun:
    """Read a recording (a file, label or `latest`) or a result; UsageError or RecordingError if it cannot be used."""
    path = Path(name).expanduser()
    if path.is_file() and path.suffix != SUFFIX and not _is_recording(path):
        results = read_results(path)
        if len(results) > 1:
            raise UsageError(f"{path} has {counted(len(results), 'run')}: give a file with one")
        return _imported(name, results[0])
    return _recorded(name, resolve(name))


def _is_recording(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _imported(name: str, result: ImportedResult) -> ToolRun:
    return ToolRun(
        file=name,
        tool=result.tool,
        version=result.version,
        requests=_sent(name, result.requests),
        anchor=ClockAnchor(origin_ns=result.origin_ns, wall_epoch_s=result.wall_epoch_s or 0.0),
        times_known=result.times_known,
        closed=math.isinf(result.load.request_rate),
        concurrency=result.load.max_concurrency,
        reported=result.reported,
        remarks=result.remarks,
    )


def _recorded(name: str, path: Path) -> ToolRun:
    """Read a recording without its warm-ups; UsageError if it has several loads."""
    try:
        with contextlib.closing(RecordingReader.open(path)) as reader:
            stages = {each.index: each for each in reader.stages() if not each.warmup}
            requests = [each for each in reader.requests(-math.inf, math.inf) if each.stage in stages]
            header = reader.header
    except RecordingError as error:
        raise UsageError(str(error)) from error
    used = {each.stage for each in requests}
    if len(used) > 1:
        raise UsageError(f"{name} has {len(used)} stages with load: give a recording of one load")
    load = next((stages[index] for index in used), None)
    known = _table(header)
    return ToolRun(
        file=name,
        tool=str(known.get("tool") or OWN),
        version=known.get("version") if known else header.versions.get(OWN),
        requests=_sent(name, requests),
        anchor=header.anchor,
        times_known=known.get("times_known") is not False,
        closed=load is None or load.request_rate is None or math.isinf(load.request_rate),
        concurrency=None if load is None else load.max_concurrency,
        reported=known.get("reported") or {},
    )


def _table(header: RunHeader) -> Mapping[str, Any]:
    found = header.manifest.get(IMPORTED)
    return found if isinstance(found, Mapping) else {}


def _sent(name: str, requests: Sequence[RequestRecord]) -> Sequence[RequestRecord]:
    found = sorted((each for each in requests if each.sent is not None), key=lambda each: (each.sent, each.id))
    if not found:
        raise UsageError(f"{name} has no requests: give a result of a run that sent some")
    return found


def _matched(run: ToolRun, truth: ToolRun) -> Sequence[RequestRecord]:
    """Return the server's account of each request of a run; UsageError if it has fewer requests."""
    arrived, sent = (ClientRows.of(each.requests).sent for each in (truth, run))
    match = match_requests(arrived, sent, server=truth.anchor, client=run.anchor, times_known=run.times_known)
    if match.matched_by is MatchedBy.NOTHING:
        raise UsageError(f"{truth.file} has fewer requests than {run.file}: give the server's account of that run")
    return truth.requests[match.first : match.first + match.count]
