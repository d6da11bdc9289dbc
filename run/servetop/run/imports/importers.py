"""Importers of other packages: formats of `servetop import` from the entry points `servetop.importers`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from servetop.core.errors import PlugInError, UsageError, system_reason
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.system.plug_ins import PlugIn, plug_ins
from servetop.run.imports.imported_result import MAX_SECONDS, ImportedLoad, ImportedResult

GROUP = "servetop.importers"
HEAD_BYTES = 64 * 1024
"""Bytes of a file by which a plug-in recognises it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """A format that a plug-in adds to `servetop import`."""

    title: str
    """The tool and what of it, as in `a log of acme bench`."""
    recognises: Callable[[bytes], bool]
    """Whether a file is in this format, by its first 64 KiB; asked for files that servetop does not recognise."""
    read: Callable[[Path], Iterable[ImportedResult]]
    """Returns the runs of a file; UsageError, without the name of the file, if it has none."""


def read_with_importer(path: Path, name: str) -> Sequence[ImportedResult]:
    """Read a file with the plug-in of that name, which must be installed, and return its runs.

    UsageError if the plug-in finds none in the file; PlugInError if it cannot be loaded, fails, or returns what is not
    a run.
    """
    plug_in = plug_ins(GROUP, "importer")[name]
    return _runs(path, plug_in, plug_in.load(Importer))


def read_recognised(path: Path, *, known: Collection[str]) -> tuple[Sequence[ImportedResult], Sequence[str]]:
    """Return the runs in a file by the first plug-in that recognises it, none if none does, and what is broken.

    Plug-ins with a `known` name, one of servetop's own formats, are not asked. One that cannot be loaded or fails in
    recognising is described in one line and hides no other.
    """
    found, broken = plug_ins(GROUP, "importer"), []
    head = _head(path) if found else b""
    for plug_in in (each for name, each in found.items() if name not in known):
        try:
            importer = plug_in.load(Importer)
            recognised = plug_in.call("recognises", importer.recognises, head)
        except (PlugInError, UsageError) as error:
            broken.append(str(error))
            continue
        if recognised:
            return _runs(path, plug_in, importer), broken
    return (), broken


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"cannot be read ({system_reason(error)}): give a file of results") from error


def _runs(path: Path, plug_in: PlugIn, importer: Importer) -> Sequence[ImportedResult]:
    runs = [_checked(each, plug_in) for each in plug_in.each("read", lambda: importer.read(path))]
    if not runs:
        raise UsageError(f"format {plug_in.name} found no run in it: give a file with requests")
    return runs


def _checked(run: object, plug_in: PlugIn) -> ImportedResult:
    """Return a run whose requests are numbered and make sense; PlugInError for anything else."""
    if not isinstance(run, ImportedResult) or not isinstance(run.load, ImportedLoad):
        raise plug_in.refused(f"read returned {type(run).__name__}: it must return runs of type ImportedResult")
    texts = (run.tool, run.backend, run.model, run.tokenizer, run.label, *run.remarks, *run.not_carried)
    if not all(isinstance(each, str) for each in texts):
        raise plug_in.refused("a name, remark or label of a run is not a text")
    requests: list[RequestRecord] = plug_in.call("read", list, run.requests)
    if not requests:
        raise UsageError(f"format {plug_in.name} found a run without requests in it")
    for number, each in enumerate(requests, start=1):
        problem = next(_problems(each), None)
        if problem is not None:
            raise plug_in.refused(f"request {number}: {problem}")
    numbered = [dataclasses.replace(each, id=number, stage=0) for number, each in enumerate(requests)]
    return dataclasses.replace(run, requests=numbered)


def _problems(request: object) -> Iterator[str]:
    if not isinstance(request, RequestRecord):
        yield f"it is {type(request).__name__}, and must be a RequestRecord"
        return
    known = [request.due, request.sent, request.headers_at, request.first_token_at, *request.chunk_times]
    times = [each for each in (*known, request.done_at) if each is not None]
    if not all(isinstance(each, float | int | np.floating) and 0 <= each <= MAX_SECONDS for each in times):
        yield f"a time is not from 0 to {MAX_SECONDS:,.0f} s: times are seconds since the first request was due"
    elif times != sorted(times):
        yield "its times are not in order: due, sent, headers, first token, chunks, done"
    elif np.shape(request.chunk_times) != np.shape(request.chunk_tokens):
        yield "chunk_times and chunk_tokens differ in length"
    elif min(request.prompt_tokens, request.output_tokens) < 0:
        yield "a number of tokens is below 0"
    elif not isinstance(request.status, RequestStatus):
        yield f"its status is {request.status!r}, and must be a RequestStatus"
