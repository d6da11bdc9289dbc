"""The files that a load was logged in: opened, unpacked, recognised, and read line by line."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol, cast

from servetop.core.errors import UsageError, system_reason
from servetop.workload.datasets.rows import BadRow, LeftOut
from servetop.workload.datasets.trace_formats import JSON_LINES, TraceFormat, format_of
from servetop.workload.shape.field_map import FieldMap
from servetop.workload.shape.json_logs import AccessLog, TraceLog, is_trace, json_object
from servetop.workload.shape.logged_request import LoggedEvent, LoggedRequest, UnreadableLine
from servetop.workload.shape.otlp_spans import OtlpLog
from servetop.workload.shape.vllm_log import VllmLog, is_vllm_line

STDIN = "-"
MAX_LINE_CHARS = 64 << 20
"""Longest line that is read; a longer one counts as unreadable."""
_SNIFFED_LINES = 2000


class LogFormat(Protocol):
    """Reads the lines of one source, in order."""

    def events(self, line: str) -> Iterator[LoggedEvent]:
        """Yield what a line says; UnreadableLine for one that is not of this format."""
        ...


class TableLog:
    """Reads traces with a header line: Azure's, BurstGPT's and others that `--dataset-name trace` reads."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._format: TraceFormat | None = None

    def events(self, line: str) -> Iterator[LoggedEvent]:
        """Yield the request of a line; the first line has the names of the columns."""
        values = next(csv.reader([line], strict=False), [])
        if self._format is None:
            self._names = [each.strip() for each in values]
            self._format = format_of(self._names)
            if self._format is None:
                raise UnreadableLine
            return
        try:
            row = self._format.row(0, dict(zip(self._names, values, strict=False)))
        except (BadRow, LeftOut):
            raise UnreadableLine from None
        if row.at is None:
            raise UnreadableLine
        yield LoggedRequest(
            at=row.at,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            resolution=self._format.grid,
        )


FORMATS: dict[str, Callable[[FieldMap], LogFormat]] = {
    "json": AccessLog,
    "vllm": lambda _: VllmLog(),
    "otlp": lambda _: OtlpLog(),
    "mooncake": lambda _: TraceLog(),
    "timed_trace": lambda _: TraceLog(JSON_LINES[1]),
    "table": lambda _: TableLog(),
}
"""By the name of `--format`."""


@contextlib.contextmanager
def source_lines(path: str, number: int) -> Iterator[Iterator[tuple[int, str | None]]]:
    """Open a source as numbered lines, gzipped or not, None for one that is too long.

    UsageError if it cannot be read; the message has its number, because its name may be secret.
    """
    try:
        with contextlib.ExitStack() as stack:
            plain = sys.stdin.buffer if path == STDIN else stack.enter_context(Path(path).expanduser().open("rb"))
            packed = cast("io.BufferedReader", plain).peek(2)[:2] == b"\x1f\x8b"
            stream = gzip.GzipFile(fileobj=plain, mode="rb") if packed else plain
            text = io.TextIOWrapper(cast("IO[bytes]", stream), encoding="utf-8-sig", errors="replace")
            stack.callback(text.detach)  # closed with its file; standard input stays open
            yield _numbered(text)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UsageError(f"source {number} is not a complete gzip file: copy it again") from None
    except OSError as error:
        raise UsageError(f"cannot read source {number} ({system_reason(error)}): check its path") from None


def _numbered(file: io.TextIOWrapper) -> Iterator[tuple[int, str | None]]:
    number = 0
    while line := file.readline(MAX_LINE_CHARS):
        number += 1
        whole = len(line) < MAX_LINE_CHARS
        while line and not line.endswith("\n") and len(line) >= MAX_LINE_CHARS:
            line = file.readline(MAX_LINE_CHARS)
        if not whole:
            yield number, None
        elif line.strip():
            yield number, line


def recognised(lines: Iterator[tuple[int, str | None]], number: int) -> tuple[str, list[tuple[int, str | None]]]:
    """Return the format of a source, and the lines from which it was recognised; UsageError if it is none of them."""
    seen: list[tuple[int, str | None]] = []
    for at, line in itertools.islice(lines, _SNIFFED_LINES):
        seen.append((at, line))
        found = "" if line is None else _format_of_line(line, first=len(seen) == 1)
        if found:
            return found, seen
    raise UsageError(f"the format of source {number} is not recognised: give --format, one of {', '.join(FORMATS)}")


def _format_of_line(line: str, *, first: bool) -> str:
    """Return the format that a line is of; empty if it does not show it."""
    if first and format_of([each.strip() for each in line.split(",")]) is not None:
        return "table"
    if is_vllm_line(line):
        return "vllm"
    try:
        values = json_object(line)
    except UnreadableLine:
        return ""
    if "resourceSpans" in values or "resource_spans" in values:
        return "otlp"
    return "mooncake" if is_trace(values) else "json"
