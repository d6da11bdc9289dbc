"""Logs of JSON lines: access logs of gateways, spans of OpenTelemetry, and traces with block identities."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from servetop.workload.datasets.rows import BadRow
from servetop.workload.datasets.trace_formats import JSON_LINES, SHAPE, TraceFormat, shape_format
from servetop.workload.shape.field_map import FieldMap
from servetop.workload.shape.log_times import log_time, resolution_of
from servetop.workload.shape.logged_request import LoggedEvent, LoggedRequest, UnreadableLine, token_count
from servetop.workload.shape.prompt_text import prompt_parts


def json_object(line: str) -> Mapping[str, object]:
    """Return the JSON object of a line; UnreadableLine for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableLine from None
    if not isinstance(found, dict):
        raise UnreadableLine
    return found


class AccessLog:
    """Reads requests of a gateway's log, one in each line."""

    def __init__(self, fields: FieldMap) -> None:
        self._fields = fields

    def events(self, line: str) -> Iterator[LoggedEvent]:
        """Yield the request of a line; UnreadableLine without a time, or with an impossible value."""
        row = json_object(line)
        time, duration = self._fields.value("timestamp", row), self._fields.value("duration", row)
        at = log_time(time) - (0.0 if duration is None else _duration(duration))
        prompt, ids = prompt_parts(self._fields.value("prompt", row))
        session = self._fields.value("session", row)
        yield LoggedRequest(
            at=at,
            input_tokens=token_count(self._fields.value("input_length", row)),
            output_tokens=token_count(self._fields.value("output_length", row)),
            prompt=prompt,
            prompt_ids=ids,
            session=str(session) if isinstance(session, str | int) and session != "" else None,
            resolution=resolution_of(time),
        )


def _duration(value: object) -> float:
    """Return the seconds of a duration."""
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise UnreadableLine from None
    if not 0 <= seconds < 1e6:
        raise UnreadableLine
    return seconds


class TraceLog:
    """Reads traces of JSON lines: Mooncake's, others with its fields, and those that `servetop shape` wrote."""

    def __init__(self, file_format: TraceFormat | None = None) -> None:
        """`file_format`: that of the rows; None: Mooncake's, or that of a shape where a row has its block size."""
        self._format = file_format

    def events(self, line: str) -> Iterator[LoggedEvent]:
        """Yield the request of a line; UnreadableLine for a malformed one."""
        values = json_object(line)
        file_format = self._format or shape_format(values) or JSON_LINES[0]
        try:
            row = file_format.row(0, values)
        except BadRow:
            raise UnreadableLine from None
        yield LoggedRequest(
            at=row.at or 0.0,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            session=row.session,
            blocks=row.blocks,
            block_tokens=file_format.block_tokens,
            resolution=file_format.grid,
        )


def is_trace(values: Mapping[str, object]) -> bool:
    """Whether a JSON object is a row of a trace with Mooncake's names."""
    return SHAPE.input_tokens in values and SHAPE.output_tokens in values and SHAPE.time in values
