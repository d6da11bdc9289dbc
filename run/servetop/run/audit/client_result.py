"""The requests of an audited client by its own account: a result that it wrote, or a recording of servetop."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from servetop.core.clock import ClockAnchor
from servetop.core.errors import RecordingError, UsageError, system_reason
from servetop.core.events import RequestRecord
from servetop.core.text.counted import counted
from servetop.recordings.library.paths import SUFFIX
from servetop.recordings.read.reader import RecordingReader
from servetop.run.imports import (
    aiperf_export,
    genai_perf_export,
    guidellm_report,
    inference_perf_records,
    llmperf_responses,
)
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.result_file import read_results

OWN = "servetop"
DEFINITIONS: Mapping[str, str] = {
    aiperf_export.TOOL: "AIPerf's inter-token latency is the mean of each request, which is TPOT here; ITL here is "
    "each gap between chunks",
    genai_perf_export.TOOL: "GenAI-Perf's inter-token latency is the mean of each request, which is TPOT here, by the "
    "tokens of its own tokenizer; tokens here are events with content",
    guidellm_report.TOOL: "guidellm's TPOT is the time to the last token divided by all output tokens, the first one "
    "included; TPOT here excludes it",
    llmperf_responses.TOOL: "LLMPerf's inter-token latency includes the time to the first token; TPOT here excludes it",
    inference_perf_records.TOOL: "inference-perf counts tokens with its own tokenizer; tokens here are those that the "
    "server counted, where the file has them",
}
"""By tool: how what it prints differs from the figures that are computed from its requests here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientResult:
    """The load of a client by its own account."""

    tool: str
    version: str | None
    requests: Sequence[RequestRecord]
    """Those that it sent, in order of sending."""
    anchor: ClockAnchor
    """The client's clock at second 0 of its requests; a part that it did not write is 0."""
    times_known: bool = True
    """Whether the result says when requests were sent; else the times were derived."""
    remarks: Sequence[str] = ()
    """What is doubtful, or defined otherwise."""


def read_client_result(path: Path, form: str | None, *, since: float) -> ClientResult:
    """Read a result that was written after Unix time `since`; UsageError if it is older, absent or not readable."""
    try:
        written = path.stat().st_mtime
    except OSError as error:
        raise UsageError(
            f"--result {path} cannot be read ({system_reason(error)}): give the file that the client writes"
        ) from error
    if written < since:
        raise UsageError(f"--result {path} is older than this audit: give the file that the client writes")
    if path.suffix == SUFFIX and form is None:
        return _recorded(path)
    results = read_results(path, form)
    if len(results) > 1:
        raise UsageError(f"--result {path} has {counted(len(results), 'run')}: let the client write one run into it")
    return _imported(results[0])


def _imported(result: ImportedResult) -> ClientResult:
    definition = DEFINITIONS.get(result.tool)
    return ClientResult(
        tool=result.tool,
        version=result.version,
        requests=_sent(result.requests),
        anchor=ClockAnchor(origin_ns=result.origin_ns, wall_epoch_s=result.wall_epoch_s or 0.0),
        times_known=result.times_known,
        remarks=[*result.remarks, *([definition] if definition else [])],
    )


def _recorded(path: Path) -> ClientResult:
    """Read a recording of servetop, without its warm-up."""
    try:
        with contextlib.closing(RecordingReader.open(path)) as reader:
            warmups = {each.index for each in reader.stages() if each.warmup}
            requests = [each for each in reader.requests(-math.inf, math.inf) if each.stage not in warmups]
            header = reader.header
    except RecordingError as error:
        raise UsageError(f"--result {error}") from error
    return ClientResult(tool=OWN, version=header.versions.get(OWN), requests=_sent(requests), anchor=header.anchor)


def _sent(requests: Sequence[RequestRecord]) -> list[RequestRecord]:
    """Return the requests that were sent, in order of sending."""
    return sorted((each for each in requests if each.sent is not None), key=lambda each: (each.sent, each.id))
