"""Reads a file with a result of another load generator, and recognises its format by its content."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from servetop.core.errors import UsageError, system_reason
from servetop.core.text.counted import counted
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.vllm_bench import is_vllm_result, read_vllm_result

MAX_BYTES = 512 * 1024 * 1024
"""Largest file that is read as a whole, which takes about four times its size in memory."""
_GZIP, _SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFormat:
    """A format whose whole file is one JSON object."""

    title: str
    """The tool and what of it, as in `a result of vllm bench serve`."""
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any]], ImportedResult]
    """Raises UsageError, without the name of the file, for values that make no sense."""


FORMATS: Mapping[str, ImportFormat] = {
    "vllm": ImportFormat(title="a result of vllm bench serve", recognises=is_vllm_result, read=read_vllm_result),
}


def read_result(path: Path, form: str | None = None, *, max_bytes: int = MAX_BYTES) -> ImportedResult:
    """Return the run in a file, whose format is `form` or that of its content; UsageError if it cannot be read."""
    try:
        document = _object(_content(path, max_bytes))
        return _format(document, form).read(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _content(path: Path, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"cannot be read ({system_reason(error)}): give a file of results") from error
    if len(content) > max_bytes:
        raise UsageError(f"it is larger than {max_bytes // 2**20} MiB, the most that is read: import a shorter run")
    if content.startswith(_SQLITE):
        raise UsageError("it is a recording or another database, not a result: view a recording with servetop replay")
    if content.startswith(_GZIP):
        raise UsageError("it is compressed: unpack it with gunzip")
    if not content.strip():
        raise UsageError("it is empty: give a file of results")
    return content


def _object(content: bytes) -> Mapping[str, Any]:
    """Return the only JSON object of a file; UsageError for anything else."""
    try:
        found = _parsed(content)
    except ValueError as error:
        count = _lines_of_objects(content)
        if count > 1:
            raise UsageError(f"it has {counted(count, 'result')}, a line each: split it") from error
        raise UsageError(f"it is not JSON, or cut off ({_where(error)}): give a whole file of results") from error
    if not isinstance(found, Mapping):
        raise UsageError(f"it is JSON, but no object: {_known()}")
    return found


def _parsed(content: bytes) -> Any:
    """Parse JSON, with NaN and Infinity as Python writes them; ValueError if it is none."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _where(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} at line {error.lineno}, column {error.colno}"
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def _lines_of_objects(content: bytes) -> int:
    """Return the number of lines if each is a JSON object, as `--append-result` writes them; else 0."""
    lines = [each for each in content.splitlines() if each.strip()]
    try:
        return len(lines) if all(isinstance(_parsed(each), Mapping) for each in lines) else 0
    except ValueError:
        return 0


def _format(document: Mapping[str, Any], form: str | None) -> ImportFormat:
    if form is not None:
        return FORMATS[form]
    for each in FORMATS.values():
        if each.recognises(document):
            return each
    raise UsageError(f"no known tool wrote it: {_known()}")


def _known() -> str:
    return f"give {' or '.join(each.title for each in FORMATS.values())}"
