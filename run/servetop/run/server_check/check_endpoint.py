"""Sends a server one short request over one endpoint, as a load sends it, and reads the response as a load does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.engines.engine import Engine
from servetop.loadgen.request.record import build_record
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.run.attached.find_format import named_fields, rejected_field, short_prompt, without_field
from servetop.run.attached.request_format import PATHS, RequestFormat
from servetop.run.attached.single_request import RequestTarget, SingleRequest, send_single
from servetop.run.server_check.server_report import EndpointCheck, ReadEvent

MOST_EVENTS = 200
"""Events of a response that a report has."""
BODY_BYTES = 16_384
"""Bytes of a response that a report has as received."""
TOKEN_IDS, TEXT = "token ids", "text"
"""Kinds of prompts."""
_MOST_CHANGES = 4
_BAD_REQUEST = (400, 422)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRequest:
    """One endpoint to ask, with one kind of prompt."""

    endpoint: str
    dialect: str
    with_ids: bool
    adapts: bool
    """Fields that the server rejects are left out, as for an unknown server."""


def requests_for(engine: Engine, *, only: str, adapts: bool) -> Iterator[EndpointRequest]:
    """Return what to ask: every endpoint of the engine, or `only` one; completions with token ids and with text."""
    for endpoint, dialect in engine.endpoints.items():
        if only and endpoint != only:
            continue
        if endpoint == "completions" and engine.takes_token_ids:
            yield EndpointRequest(endpoint=endpoint, dialect=dialect, with_ids=True, adapts=adapts)
        yield EndpointRequest(endpoint=endpoint, dialect=dialect, with_ids=False, adapts=adapts)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How a request is written: as usual, or with changes after errors of the server."""

    form: RequestFormat
    whole: bool = False
    """Request a response in one piece instead of a stream."""

    @property
    def changes(self) -> tuple[str, ...]:
        names = [f"without {name}" for name in self.form.without]
        names += ["with max_completion_tokens instead of max_tokens"] if self.form.new_limit else []
        return (*names, *(["without a stream"] if self.whole else []))


async def check_endpoint(
    target: RequestTarget, wanted: EndpointRequest, workload: WorkloadConfig, *, timeout: float
) -> tuple[EndpointCheck, RequestFormat]:
    """Send one request, to an unknown server again without what it rejects; return the last one and its format."""
    attempt = _Attempt(RequestFormat(wanted.endpoint, as_text=not wanted.with_ids))
    refusals: list[str] = []
    while True:
        request = await _send(target, wanted, attempt, workload=workload, timeout=timeout)
        changed = _changed(request, attempt, workload) if wanted.adapts and len(refusals) < _MOST_CHANGES else None
        if changed is None:
            break
        refusals.append(request.error or "")
        attempt = changed
    check = _check(target, wanted, request)
    return replace(check, changes=attempt.changes, refusals=tuple(refusals)), attempt.form


async def _send(
    target: RequestTarget, wanted: EndpointRequest, attempt: _Attempt, *, workload: WorkloadConfig, timeout: float
) -> SingleRequest:
    form = attempt.form
    body = form.body_changes(workload.extra_body)
    changed = replace(workload, endpoint=wanted.endpoint, extra_body=body, stream=workload.stream and not attempt.whole)
    prompt = short_prompt(target, with_ids=wanted.with_ids)
    dialect = form.dialect if form.new_limit else wanted.dialect
    return await send_single(target, dialect, prompt=prompt, workload=changed, timeout=timeout)


def _changed(request: SingleRequest, attempt: _Attempt, workload: WorkloadConfig) -> _Attempt | None:
    """Return the next attempt; None if the request was accepted, or if its error names nothing to change."""
    if request.status is not RequestStatus.ERROR or attempt.form.endpoint not in PATHS:
        return None
    field = rejected_field(request, attempt.form, workload.extra_body)
    if field:
        return replace(attempt, form=without_field(attempt.form, field))
    if request.http_status in _BAD_REQUEST and not attempt.whole and "stream" in named_fields(request.received):
        return replace(attempt, whole=True)
    return None


def _check(target: RequestTarget, wanted: EndpointRequest, request: SingleRequest) -> EndpointCheck:
    record = build_record(request, worker=0)
    started = request.sent if request.sent is not None else 0.0
    address = Endpoint.parse(target.url, api_key=target.api_key, headers=target.headers)
    has_response = request.http_status is not None
    with_text = sum(1 for chunk, _ in request.read if chunk.tokens)
    return EndpointCheck(
        endpoint=wanted.endpoint,
        prompt=TOKEN_IDS if wanted.with_ids else TEXT,
        url=address.server.where(request.dialect.path),
        sent=_json(request.sent_body),
        header_names=("host", *address.fields(), "x-request-id", "content-length"),
        answered=request.status is RequestStatus.OK,
        status=str(request.status),
        error=request.error,
        http_status=request.http_status,
        media_type=request.media_type,
        streamed=with_text > 1,
        prompt_tokens=record.prompt_tokens if has_response else None,
        output_tokens=record.output_tokens if has_response else None,
        token_source=str(record.token_source) if record.output_tokens else "",
        headers_seconds=_since(started, request.headers_at),
        first_token_seconds=_since(started, request.first_token_at),
        total_seconds=_since(started, request.done_at) if has_response else None,
        events=tuple(_events(request, started)),
        body=request.received[:BODY_BYTES].decode("utf-8", "replace"),
    )


def _events(request: SingleRequest, started: float) -> Iterator[ReadEvent]:
    for chunk, at in request.read[:MOST_EVENTS]:
        yield ReadEvent(
            at=at - started,
            text=chunk.text,
            tokens=chunk.tokens,
            reasoning=chunk.reasoning,
            output_tokens=chunk.output_tokens,
            final=chunk.final,
            error=chunk.error,
        )


def _since(started: float, at: float | None) -> float | None:
    return None if at is None else at - started


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
