"""`servetop doctor URL`: what a server answers over each endpoint, and the command that measures it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from servetop.cli.configuration.configure import run_config
from servetop.cli.doctor.doctor import wrapped
from servetop.cli.options.engine_options import EngineOptions
from servetop.cli.options.request_options import RequestOptions
from servetop.cli.options.run_options import RepeatableOptions
from servetop.cli.options.tool_options import DoctorOptions, given_options
from servetop.core.config import RunConfig, to_data
from servetop.core.errors import ExitCode
from servetop.core.events import RequestStatus, TokenSource
from servetop.core.interfaces.dialect import Chunk
from servetop.core.text.known_secrets import redactor_of
from servetop.core.text.redaction import Redactor
from servetop.core.text.sanitize import sanitize_line
from servetop.run import console
from servetop.run.attached.ask_endpoints import EndpointAnswer, ServerAnswers, ask_endpoints
from servetop.tui.drawing import formats
from servetop.workload.request_headers import all_headers

_MOST_EVENTS = 12
"""Events of a response that are printed; JSON has all."""
_MOST_CHARS = 400
"""Characters of a request body that are printed."""
_METRICS = {
    "kv_blocks_used": "KV blocks used",
    "kv_blocks_total": "KV blocks",
    "kv_usage": "KV usage",
    "max_num_seqs": "batch limit",
    "first_token_seconds_total": "TTFT",
    "queue_seconds_total": "queue time",
    "prefill_seconds_total": "prefill time",
    "tpot_seconds_total": "TPOT",
    "e2el_seconds_total": "E2EL",
    **dict.fromkeys(
        ("first_tokens_total", "queued_requests_total", "prefilled_requests_total", "tpot_requests_total",
         "e2el_requests_total"),
        "",
    ),
}  # fmt: skip
_SOURCES = {
    TokenSource.USAGE: "counted by the server",
    TokenSource.CHUNKS: "one per event with text: the server sends no count",
    TokenSource.ESTIMATE: "estimated: the server sends no count",
    TokenSource.DISPUTED: "disputed: the server's count does not fit its events",
}


def examine_server(options: DoctorOptions) -> int:
    """Ask the server and print the report; ENGINE_FAILED if it answers over no endpoint."""
    config = _config(options)
    found = asyncio.run(ask_endpoints(config.engine, config.workload))
    redactor = redactor_of(config)
    if options.as_json:
        console.out_json(redactor.data(_data(found, config, options)))
    else:
        columns = shutil.get_terminal_size().columns if console.is_terminal() else None
        console.out(*_lines(found, config, options, redactor=redactor, columns=columns))
    answered = any(each.answered for each in found.answers)
    return int(ExitCode.OK if answered else ExitCode.ENGINE_FAILED)


def _config(options: DoctorOptions) -> RunConfig:
    """The configuration of a run with these options; UsageError as for a run."""
    engine = EngineOptions(
        engine=options.engine,
        model=options.model,
        url=(options.url,),
        metrics_url=options.metrics_url,
        metrics_api_key_env=options.metrics_api_key_env,
        metrics_header_env=options.metrics_header_env,
        attach_timeout=options.attach_timeout,
        api_key_env=options.api_key_env,
    )
    requests = RequestOptions(
        endpoint=options.endpoint,
        extra_body=options.extra_body,
        header=options.header,
        header_env=options.header_env,
    )
    return run_config(RepeatableOptions(engine=engine, connection=options.connection, requests=requests), ())


def command_line(found: ServerAnswers, options: DoctorOptions) -> str:
    """The command of a run against this server: the options given, and the endpoint and model that it needs."""
    words = ["servetop", "--url", options.url]
    for option, value in given_options(options):
        words += _option_words(option.spelling, option.name, value)
    answered = [each.endpoint for each in found.answers if each.answered]
    if answered and not options.endpoint and answered[0] != found.answers[0].endpoint:
        words += ["--endpoint", answered[0]]
    if options.model is None and len(found.facts.models) > 1 and found.facts.model:
        words += ["--model", found.facts.model]
    return shlex.join(words)


def _option_words(spelling: str, name: str, value: Any) -> list[str]:
    """An option and its value as on a command line; a repeated option once for each entry."""
    spelling = spelling.split("/")[0]
    if value is True:
        return [spelling]
    if name == "extra_body":
        return [spelling, json.dumps(dict(value))]
    if isinstance(value, dict):
        separator = ":" if name == "header" else "="
        return [word for key, each in value.items() for word in (spelling, f"{key}{separator}{each}")]
    return [spelling, f"{value:g}" if isinstance(value, float) else str(value)]


def _lines(
    found: ServerAnswers, config: RunConfig, options: DoctorOptions, *, redactor: Redactor, columns: int | None
) -> Iterator[str]:
    """The report as text."""

    def shown(text: str) -> str:
        return redactor.text(sanitize_line(text))

    facts = found.facts
    limits = [
        f"{label} {formats.count(value)}"
        for label, value in (("context", facts.max_model_len), ("batch limit", facts.max_num_seqs))
        if value is not None
    ]
    what = " · ".join([f"{facts.title} {facts.version or ''}".strip(), f"model {facts.model}", *limits])
    yield from wrapped("      server       ", shown(what), columns)
    for remark in found.remarks:
        yield from wrapped("note  requests     ", shown(remark), columns)
    for answer in found.answers:
        yield ""
        yield from _answer_lines(answer, config, shown=shown, columns=columns)
    yield ""
    yield from _metrics_lines(found, columns)
    yield ""
    answered = sum(each.answered for each in found.answers)
    if answered:
        yield f"answers over {answered} of {len(found.answers)} endpoints; measure it with"
        yield f"    {redactor.text(command_line(found, options))}"
    else:
        yield "answers over no endpoint: see the errors above"


def _answer_lines(
    answer: EndpointAnswer, config: RunConfig, *, shown: Callable[[str], str], columns: int | None
) -> Iterator[str]:
    record, width = answer.record, 13
    status = "ok  " if answer.answered else "FAIL"
    yield from wrapped(f"{status}  {answer.endpoint:<{width - 2}}  ", shown(_outcome(answer)), columns)
    indent = " " * (width + 6)
    body = answer.body.decode("utf-8", "replace")
    names = _header_names(config)
    headers = f" with {', '.join(names)}" if names else ""
    sent = f"sent      POST {answer.path}{headers} {body[:_MOST_CHARS]}{'…' if len(body) > _MOST_CHARS else ''}"
    yield from wrapped(indent, shown(sent), columns)
    http = "no response" if record.http_status is None else f"HTTP {record.http_status}"
    count = len(answer.events)
    yield f"{indent}received  {http}" + (f", {count} {'event' if count == 1 else 'events'} read" if count else "")
    for at, chunk in answer.events[:_MOST_EVENTS]:
        yield from wrapped(f"{indent}{formats.seconds(at):>8}  ", shown(_event(chunk)), columns)
    if len(answer.events) > _MOST_EVENTS:
        yield f"{indent}{'…':>8}  {len(answer.events) - _MOST_EVENTS} more"


def _header_names(config: RunConfig) -> list[str]:
    """The names of the user's headers; their values are secrets."""
    keys = ["authorization"] if config.engine.api_key_env else []
    return sorted({*(name.lower() for name in all_headers(config.workload, os.environ)), *keys})


def _outcome(answer: EndpointAnswer) -> str:
    """One line: tokens and times, or the error."""
    record = answer.record
    if not answer.answered:
        return record.error or "no completion"
    parts = [f"{record.output_tokens} tokens, {_SOURCES.get(record.token_source, '')}"]
    if record.ttft is not None:
        parts.append(f"TTFT {formats.seconds(record.ttft)}")
    if record.e2el is not None:
        parts.append(f"E2EL {formats.seconds(record.e2el)}")
    if record.status is not RequestStatus.OK and record.error:
        parts.append(record.error)
    return " · ".join(parts)


def _event(chunk: Chunk) -> str:
    """How an event was read."""
    if chunk.error is not None:
        return f"error: {chunk.error}"
    parts = []
    if chunk.tokens:
        kind = "reasoning" if chunk.reasoning else "text"
        parts.append(f"{kind} {chunk.text!r}")
    if chunk.output_tokens is not None:
        prompt = "?" if chunk.prompt_tokens is None else chunk.prompt_tokens
        parts.append(f"usage {prompt} in, {chunk.output_tokens} out")
    if chunk.stops:
        parts.append("finish reason")
    if chunk.final:
        parts.append("end of the stream")
    return " · ".join(parts) or "nothing that counts"


def _metrics_lines(found: ServerAnswers, columns: int | None) -> Iterator[str]:
    status = "ok  " if found.metrics else "note"
    text = _names(found.metrics) or "none: the engine is not measured, only the client"
    yield from wrapped(f"{status}  metrics      ", text, columns)
    if found.metrics and found.absent:
        yield from wrapped(f"{'':<4}  {'':<11}  ", "not exported: " + _names(found.absent), columns)


def _names(fields: Iterable[str]) -> str:
    """Names of metrics for a person; the counts that turn sums of times into means are left out."""
    words = (_METRICS.get(each, each.removesuffix("_total").replace("_", " ")) for each in fields)
    return ", ".join(word for word in words if word)


def _data(found: ServerAnswers, config: RunConfig, options: DoctorOptions) -> dict[str, Any]:
    """The report as plain data; times in seconds after the request was sent."""
    return {
        "server": to_data(found.facts),
        "remarks": list(found.remarks),
        "endpoints": [_answer_data(each, config) for each in found.answers],
        "metrics": {"found": list(found.metrics), "not_exported": list(found.absent)},
        "command": command_line(found, options),
    }


def _answer_data(answer: EndpointAnswer, config: RunConfig) -> dict[str, Any]:
    record = answer.record
    return {
        "endpoint": answer.endpoint,
        "answered": answer.answered,
        "path": answer.path,
        "headers": _header_names(config),
        "body": answer.body.decode("utf-8", "replace"),
        "http_status": record.http_status,
        "status": record.status,
        "error": record.error,
        "input_tokens": record.prompt_tokens,
        "output_tokens": record.output_tokens,
        "token_source": record.token_source,
        "ttft": record.ttft,
        "e2el": record.e2el,
        "events": [{"at": at, **_event_data(chunk)} for at, chunk in answer.events],
    }


def _event_data(chunk: Chunk) -> dict[str, Any]:
    """The fields of an event that say something."""
    return {name: value for name, value in chunk._asdict().items() if value not in (None, "", 0, False)}
