"""Reads a file with a result of another load generator, and recognises its format by its content."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from servetop.core.errors import UsageError, system_reason
from servetop.run.imports.aiperf_export import is_aiperf_record, read_aiperf_records
from servetop.run.imports.genai_perf_export import is_genai_perf_export, read_genai_perf_export
from servetop.run.imports.guidellm_report import is_guidellm_report, read_guidellm_report
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.importers import read_recognised, read_with_importer
from servetop.run.imports.inference_perf_records import is_inference_perf_file, read_inference_perf_records
from servetop.run.imports.llmperf_responses import is_llmperf_file, read_llmperf_responses
from servetop.run.imports.sglang_bench import is_sglang_result, read_sglang_result
from servetop.run.imports.vllm_bench import is_vllm_result, read_vllm_result

MAX_BYTES = 512 * 1024 * 1024
"""Largest file that is read as a whole, which takes about four times its size in memory."""
MAX_LINE = 64 * 1024 * 1024
"""Longest line of a file of JSON lines, of which one is in memory at a time."""
_STATISTICS = b"Serving Benchmark Result"
"""The heading of what vLLM's and SGLang's benchmarks print, as in pages of GPUStack's performance lab."""
_GZIP, _SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFormat:
    """A format whose file is one JSON value, or one object in each line for each run."""

    title: str
    """The tool and what of it, as in `a result of vllm bench serve`."""
    recognises: Callable[[Any], bool]
    read: Callable[[Any, Path], Sequence[ImportedResult]]
    """Takes a value and the path of the file; raises UsageError, without the name of the file, if it has no run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """A format with a JSON object in each line."""

    title: str
    recognises: Callable[[Mapping[str, Any]], bool]
    """By the first line."""
    read: Callable[[Iterator[Mapping[str, Any]], Path], ImportedResult]
    """Takes the lines and the path of the file; raises UsageError as `ImportFormat.read`."""


FORMATS: Mapping[str, ImportFormat | LineFormat] = {
    "vllm": ImportFormat(
        title="a result of vllm bench serve",
        recognises=is_vllm_result,
        read=lambda document, _: [read_vllm_result(document)],
    ),
    "aiperf": LineFormat(title="profile_export.jsonl of AIPerf", recognises=is_aiperf_record, read=read_aiperf_records),
    "sglang": ImportFormat(
        title="a result of SGLang's bench_serving",
        recognises=is_sglang_result,
        read=lambda document, _: [read_sglang_result(document)],
    ),
    "guidellm": ImportFormat(
        title="benchmarks.json of guidellm", recognises=is_guidellm_report, read=read_guidellm_report
    ),
    "inference-perf": ImportFormat(
        title="per_request_lifecycle_metrics.json of inference-perf",
        recognises=is_inference_perf_file,
        read=read_inference_perf_records,
    ),
    "llmperf": ImportFormat(
        title="individual responses of LLMPerf", recognises=is_llmperf_file, read=read_llmperf_responses
    ),
    "genai-perf": ImportFormat(
        title="profile_export.json of GenAI-Perf", recognises=is_genai_perf_export, read=read_genai_perf_export
    ),
}


class UnknownResultError(UsageError):
    """A file is in no format that servetop itself reads."""


def read_results(path: Path, form: str | None = None, *, max_bytes: int = MAX_BYTES) -> Sequence[ImportedResult]:
    """Return the runs in a file, whose format is `form` or that of its content; UsageError if it cannot be read.

    Plug-ins are asked for a file that servetop does not recognise; PlugInError if one fails in reading it.
    """
    try:
        if form is not None and form not in FORMATS:
            return read_with_importer(path, form)
        return _read(path, form, max_bytes)
    except UnknownResultError as error:
        return _read_by_plug_in(path, error if form is None else UsageError(str(error)))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _read_by_plug_in(path: Path, unknown: UsageError) -> Sequence[ImportedResult]:
    try:
        results, broken = read_recognised(path, known=FORMATS) if isinstance(unknown, UnknownResultError) else ((), ())
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    if not results:
        raise UsageError("; ".join((f"{path}: {unknown}", *broken))) from unknown
    return results


def _read(path: Path, form: str | None, max_bytes: int) -> Sequence[ImportedResult]:
    found = FORMATS[form] if form is not None else _format_of_lines(path)
    if isinstance(found, LineFormat):
        with _opened(path) as file:
            return [found.read(_rows(file), path)]
    documents = _documents(_content(path, max_bytes))
    formats = [found or _format(document) for document in documents]
    read = zip(formats, documents, strict=True)
    return [result for each, document in read for result in each.read(document, path)]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file; UsageError if it cannot be read, or if it is something that no tool writes as a result."""
    try:
        with path.open("rb") as file:
            _refuse_binary(file.read(len(_SQLITE)))
            file.seek(0)
            yield file
    except OSError as error:
        raise UsageError(f"cannot be read ({system_reason(error)}): give a file of results") from error


def _refuse_binary(head: bytes) -> None:
    if head.startswith(_SQLITE):
        raise UsageError("it is a recording or another database, not a result: view a recording with servetop replay")
    if head.startswith(_GZIP):
        raise UsageError("it is compressed: unpack it with gunzip")


def _format_of_lines(path: Path) -> LineFormat | None:
    """Return the format whose first line a file has; None for a file that has to be read as a whole."""
    with _opened(path) as file:
        line = file.readline(MAX_LINE)
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    lines = (each for each in FORMATS.values() if isinstance(each, LineFormat))
    return next((each for each in lines if isinstance(first, Mapping) and each.recognises(first)), None)


def _rows(file: BinaryIO) -> Iterator[Mapping[str, Any]]:
    """Yield the object of each line; UsageError for a line that is none."""
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        if line.strip():
            try:
                row = _parsed(line)
            except ValueError as error:
                raise UsageError(f"line {number} is not JSON, or cut off: give a whole file of results") from error
            if not isinstance(row, Mapping):
                raise UsageError(f"line {number} is not a JSON object: {_known()}")
            yield row


def _content(path: Path, max_bytes: int) -> bytes:
    with _opened(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UsageError(f"it is larger than {max_bytes // 2**20} MiB, the most that is read: import a shorter run")
    if not content.strip():
        raise UsageError("it is empty: give a file of results")
    return content


def _documents(content: bytes) -> Sequence[Any]:
    """Return the JSON value of a file, or the object of each of its lines; UsageError for anything else."""
    try:
        return [_parsed(content)]
    except ValueError as error:
        if lines := _objects_of_lines(content):
            return lines
        if _STATISTICS in content:
            raise UsageError(
                "it has the statistics that a benchmark prints, and no requests: import the file that "
                "vllm bench serve --save-result --save-detailed or bench_serving --output-details writes"
            ) from error
        raise UnknownResultError(
            f"it is not JSON, or cut off ({_where(error)}): give a whole file of results"
        ) from error


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


def _objects_of_lines(content: bytes) -> Sequence[Any]:
    """Return the object of each line, as tools that append their results write them; none if one is another value."""
    try:
        found = [_parsed(each) for each in content.splitlines() if each.strip()]
    except ValueError:
        return []
    return found if all(isinstance(each, Mapping) for each in found) else []


def _format(document: Any) -> ImportFormat:
    for each in FORMATS.values():
        if isinstance(each, ImportFormat) and each.recognises(document):
            return each
    raise UnknownResultError(f"no known tool wrote it: {_known()}")


def _known() -> str:
    *others, last = (each.title for each in FORMATS.values())
    return f"give {', '.join(others)} or {last}"
