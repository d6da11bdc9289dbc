"""Spans of OpenTelemetry in OTLP JSON, as the file exporter of its collector writes them: requests to models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from servetop.workload.shape.json_logs import json_object
from servetop.workload.shape.log_times import log_time
from servetop.workload.shape.logged_request import LoggedEvent, LoggedRequest, UnreadableLine, token_count
from servetop.workload.shape.prompt_text import prompt_parts

_INPUTS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.usage.prompt_tokens",
    "llm.token_count.prompt",
)
_OUTPUTS = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens",
    "llm.token_count.completion",
)  # fmt: skip
_SESSIONS = ("gen_ai.conversation.id", "session.id", "gen_ai.session.id", "langfuse.session.id")
_PROMPTS = ("gen_ai.input.messages", "gen_ai.prompt", "llm.prompts", "input.value")
_NUMBERED = re.compile(r"(?:gen_ai\.prompt|llm\.input_messages)\.(\d+)\.(?:message\.)?(role|content)")
_OPERATIONS = ("chat", "text_completion", "generate_content", "completion")
"""Operations that are one request to a model; an agent's span holds the sum of several."""
_SPANS = {"resourceSpans": "scopeSpans", "resource_spans": "scope_spans"}


class OtlpLog:
    """Reads spans that have the usage of a model."""

    def events(self, line: str) -> Iterator[LoggedEvent]:
        """Yield the requests among the spans of a line; UnreadableLine, at the end, if one or all cannot be read."""
        data = json_object(line)
        name = next((each for each in _SPANS if each in data), None)
        if name is None:
            raise UnreadableLine
        whole = True
        for span in _spans(data[name], _SPANS[name]):
            try:
                request = _request(span)
            except UnreadableLine:
                whole = False
            else:
                yield from () if request is None else (request,)
        if not whole:
            raise UnreadableLine


def _spans(resources: object, scopes: str) -> Iterator[Mapping[str, object]]:
    for resource in _objects(resources):
        for scope in _objects(resource.get(scopes, resource.get("instrumentationLibrarySpans"))):
            yield from _objects(scope.get("spans"))


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    if not isinstance(value, list):
        return
    for each in value:
        if not isinstance(each, dict):
            raise UnreadableLine
        yield each


def _request(span: Mapping[str, object]) -> LoggedRequest | None:
    """Return the request of a span; None for a span of anything else."""
    attributes = {str(each.get("key")): _value(each.get("value")) for each in _objects(span.get("attributes"))}
    inputs, outputs = _first(attributes, _INPUTS), _first(attributes, _OUTPUTS)
    operation = attributes.get("gen_ai.operation.name")
    if (inputs is None and outputs is None) or operation not in (None, *_OPERATIONS):
        return None
    prompt, ids = prompt_parts(_prompt(attributes))
    session = _first(attributes, _SESSIONS)
    return LoggedRequest(
        at=log_time(span.get("startTimeUnixNano", span.get("start_time_unix_nano"))),
        input_tokens=token_count(inputs),
        output_tokens=token_count(outputs),
        prompt=prompt,
        prompt_ids=ids,
        session=None if session is None else str(session),
        key=str(span.get("spanId", span.get("span_id", ""))),
        parent=str(span.get("parentSpanId", span.get("parent_span_id", ""))),
    )


def _first(attributes: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _prompt(attributes: Mapping[str, object]) -> object:
    found = _first(attributes, _PROMPTS)
    if found is not None:
        return found
    messages: dict[int, dict[str, object]] = {}
    for name, value in attributes.items():
        if (match := _NUMBERED.fullmatch(name)) is not None:
            messages.setdefault(int(match[1]), {})[match[2]] = value
    return [messages[number] for number in sorted(messages)] or None


def _value(value: object) -> object:
    """Return the value of an attribute; None for a list or a table of values."""
    if not isinstance(value, dict):
        return None
    names = ("stringValue", "intValue", "doubleValue", "string_value", "int_value", "double_value")
    return next((value[name] for name in names if name in value), None)
