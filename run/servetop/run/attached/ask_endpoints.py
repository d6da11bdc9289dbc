"""Asks a server one short question over each endpoint, and reads the responses as a load does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig, WorkloadConfig
from servetop.core.events import EngineSample, RequestRecord, RequestStatus
from servetop.core.interfaces.dialect import Chunk, Dialect, Prompt
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.engines.engine import Engine
from servetop.loadgen.request.record import build_record
from servetop.run.attached.attach_servers import AttachedServers, attach_servers, request_target
from servetop.run.attached.find_format import TEST_PROMPT
from servetop.run.attached.request_format import RequestFormat
from servetop.run.attached.single_request import SingleRequest, send_single


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAnswer:
    """One question over one endpoint, and how its response was read."""

    endpoint: str
    path: str
    body: bytes
    """As sent."""
    record: RequestRecord
    events: tuple[tuple[float, Chunk], ...]
    """What was read, each with the seconds after the request was sent."""

    @property
    def answered(self) -> bool:
        """Whether the server sent a completion, at least in part."""
        return self.record.http_status == 200 and self.record.status is not RequestStatus.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswers:
    """What a server is, and its answer over each of its endpoints."""

    facts: EngineFacts
    remarks: tuple[str, ...]
    answers: tuple[EndpointAnswer, ...]
    metrics: tuple[str, ...]
    """Fields of EngineSample that the metrics page has."""
    absent: tuple[str, ...]
    """Those that it has not."""


async def ask_endpoints(config: EngineConfig, workload: WorkloadConfig) -> ServerAnswers:
    """Attach to the server of a run, ask over each endpoint, or that of `workload`, and read its metrics once.

    EngineError if there is no server or it cannot be used; UsageError for options that do not fit it.
    """
    clock = MonotonicClock()
    attached = await attach_servers(config, clock, workload, on_line=lambda _: None, on_change=lambda *_: None)
    handle = attached.handle
    try:
        answers = [await _ask(attached, each, config, workload) for each in _endpoints(handle.facts, workload.endpoint)]
        sample = await handle.sample()
    finally:
        await handle.stop()
    metrics, absent = _fields(sample, handle.facts)
    return ServerAnswers(
        facts=handle.facts, remarks=attached.remarks, answers=tuple(answers), metrics=metrics, absent=absent
    )


def _endpoints(facts: EngineFacts, wanted: str) -> Sequence[str]:
    return (wanted,) if wanted else facts.endpoints


async def _ask(
    attached: AttachedServers, endpoint: str, config: EngineConfig, workload: WorkloadConfig
) -> EndpointAnswer:
    """Ask over one endpoint, in the form in which a load with this `--endpoint` would be sent."""
    handle, found = attached.handle, attached.request_format
    target = request_target(handle, config, workload)
    location, prompt, body = _form(handle.engine, endpoint, found, workload)
    changed = replace(workload, endpoint=endpoint, extra_body=body)
    request = await send_single(target, location, prompt=prompt, workload=changed, timeout=config.attach_timeout)
    dialect = dialect_for(location, model=target.model, continuous_usage=target.continuous_usage)
    return EndpointAnswer(
        endpoint=endpoint,
        path=dialect.path,
        body=request.sent_body,
        record=build_record(request, worker=0),
        events=tuple(_events(request, dialect)),
    )


def _form(
    engine: Engine, endpoint: str, found: RequestFormat | None, workload: WorkloadConfig
) -> tuple[str, Prompt, dict[str, object]]:
    """The dialect, the prompt and the changes of the body."""
    if found is not None and found.endpoint == endpoint:
        return found.dialect, TEST_PROMPT, found.body_changes(workload.extra_body)
    prompt = TEST_PROMPT if engine.takes_token_ids else replace(TEST_PROMPT, token_ids=None)
    return engine.endpoints[endpoint], prompt, dict(workload.extra_body)


def _events(request: SingleRequest, dialect: Dialect) -> list[tuple[float, Chunk]]:
    """Read the response again, piece by piece, with the texts."""
    sent = request.sent or 0.0
    if request.http_status != 200 or not request.pieces:
        return []
    if not request.streamed:
        return [(request.pieces[-1][1] - sent, chunk) for chunk in dialect.parse_response(request.received)]
    parser = dialect.parser(keep_texts=True)
    return [(at - sent, chunk) for data, at in request.pieces for chunk in parser.feed(data)]


def _fields(sample: EngineSample | None, facts: EngineFacts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of the sample that have values, and those that have not."""
    names = [each.name for each in fields(EngineSample) if not each.name.startswith("scrape_")]
    present = tuple(name for name in names if sample is not None and getattr(sample, name) is not None)
    expected = (name for name in names if name not in present and (name in facts.not_exported or sample is None))
    return present, tuple(expected)
