"""The report of an audit: what the server saw, and beside it what the client reported; `servetop audit --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from servetop.analysis.field_metadata import OMITTED
from servetop.core.events import RequestRecord
from servetop.core.text.counted import counted
from servetop.core.units import MS_PER_S
from servetop.run.audit.audit_run import ObservedLoad
from servetop.run.audit.client_result import ClientResult
from servetop.run.audit.load_figures import OVER_TIME, TIMED, RequestError, load_figures, request_errors
from servetop.run.audit.request_match import MatchedBy, RequestMatch, match_requests
from servetop.simulator.server.observed_connection import ProbeRequests


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedServer:
    """What was simulated, and how late the simulator itself was."""

    model: str
    gpu: str
    engine_profile: str
    max_num_seqs: int
    lag_p99_ms: float | None
    """The simulator's own delay; None if it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedProcess:
    """The client's process."""

    command: tuple[str, ...]
    """As given, with its placeholders."""
    seconds: float
    exit_code: int | None
    ending: str
    """How it ended, as in `exited with status 0`."""
    interrupted: str | None
    """The signal on which the audit ended it."""
    timed_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsSeen:
    """The generation requests that arrived, and which of them are those of the client's result."""

    seen: int
    before: int
    """Requests before the first of the result, such as a warm-up."""
    after: int
    """Requests after the last of the result."""
    others: tuple[ProbeRequests, ...]
    """Requests that generate nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """The client's result."""

    file: str
    tool: str
    version: str | None
    requests: int
    matched_by: MatchedBy
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedFigure:
    """One figure of the load; those of latency are in milliseconds, rates per second."""

    name: str
    truth: float | None
    """What the server saw, of the requests of the client's result; without a result, of all."""
    client: float | None
    """What follows from the client's result; None without one, or if the result lacks it."""
    error_percent: float | None
    """The client's error as a percentage of the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The result of an audit."""

    server: AuditedServer
    client: AuditedProcess
    requests: RequestsSeen
    figures: tuple[AuditedFigure, ...]
    request_errors: tuple[RequestError, ...]
    """Empty if the requests of both could not be matched."""
    result: ReadResult | None = field(default=None, metadata=OMITTED)
    """Omitted without --result, and if it cannot be read."""


def audit_report(
    observed: ObservedLoad, command: Sequence[str], *, result: ClientResult | None = None, file: str = ""
) -> AuditReport:
    """Return the report of a load, beside the client's result if there is one, read from `file`."""
    requests, match, read = observed.requests, None, None
    if result is not None:
        match = _match(observed, result)
        read = _read(result, match, file=file)
        requests = requests[match.first : match.first + match.count]
    return AuditReport(
        server=_server(observed),
        client=AuditedProcess(
            command=tuple(command),
            seconds=observed.seconds,
            exit_code=observed.exit_code,
            ending=observed.ending,
            interrupted=observed.interrupted,
            timed_out=observed.timed_out,
        ),
        requests=RequestsSeen(
            seen=len(observed.requests),
            before=0 if match is None else match.first,
            after=0 if match is None else len(observed.requests) - match.first - match.count,
            others=tuple(observed.others),
        ),
        result=read,
        figures=_figures(requests, result),
        request_errors=_request_errors(requests, result, match),
    )


def _server(observed: ObservedLoad) -> AuditedServer:
    spec, lags = observed.spec, np.array(observed.lags, float)
    return AuditedServer(
        model=spec.model.name,
        gpu=spec.gpu.name,
        engine_profile=spec.engine.name,
        max_num_seqs=spec.batch_limit,
        lag_p99_ms=float(np.percentile(lags, 99)) * MS_PER_S if lags.size else None,
    )


def _match(observed: ObservedLoad, result: ClientResult) -> RequestMatch:
    arrived, sent = (np.array([each.sent for each in rows], float) for rows in (observed.requests, result.requests))
    return match_requests(arrived, sent, server=observed.anchor, client=result.anchor, times_known=result.times_known)


def _read(result: ClientResult, match: RequestMatch, *, file: str) -> ReadResult:
    remarks = list(result.remarks)
    if match.matched_by is MatchedBy.NOTHING and result.requests:
        missing = len(result.requests) - match.count
        remarks.insert(0, f"{counted(missing, 'request')} of the result did not reach the server")
    return ReadResult(
        file=file,
        tool=result.tool,
        version=result.version,
        requests=len(result.requests),
        matched_by=match.matched_by,
        remarks=tuple(remarks),
    )


def _figures(requests: Sequence[RequestRecord], result: ClientResult | None) -> tuple[AuditedFigure, ...]:
    truth = load_figures(requests)
    reported = {} if result is None else load_figures(result.requests)
    unknown = frozenset[str]() if result is None or result.times_known else TIMED | OVER_TIME
    return tuple(_figure(name, value, None if name in unknown else reported.get(name)) for name, value in truth.items())


def _figure(name: str, truth: float | None, client: float | None) -> AuditedFigure:
    error = None if client is None or not truth else (client / truth - 1) * 100
    return AuditedFigure(name=name, truth=truth, client=client, error_percent=error)


def _request_errors(
    truth: Sequence[RequestRecord], result: ClientResult | None, match: RequestMatch | None
) -> tuple[RequestError, ...]:
    if result is None or match is None or match.matched_by is MatchedBy.NOTHING:
        return ()
    return request_errors(truth, result.requests, shift=match.shift)
