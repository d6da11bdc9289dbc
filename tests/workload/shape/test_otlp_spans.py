"""Spans with the usage of a model are requests; others are not."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from servetop.workload.shape.logged_request import LoggedRequest, UnreadableLine
from servetop.workload.shape.otlp_spans import OtlpLog

USAGE = {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 5}


def span(attributes: Mapping[str, object], **others: object) -> dict[str, Any]:
    kinds = {int: "intValue", str: "stringValue", float: "doubleValue"}
    values = [
        {"key": name, "value": {kinds[type(value)]: str(value) if type(value) is int else value}}
        for name, value in attributes.items()
    ]
    return {"spanId": "a1", "startTimeUnixNano": "1700000000500000000", "attributes": values, **others}


def line(spans: Sequence[object]) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def requests(*spans: object) -> list[LoggedRequest]:
    events = list(OtlpLog().events(line(spans)))
    assert all(isinstance(event, LoggedRequest) for event in events)
    return events  # type: ignore[return-value]


def test_a_span_with_usage_is_a_request() -> None:
    attributes = {**USAGE, "gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c9"}
    (found,) = requests(span(attributes, parentSpanId="b2"), span({"http.route": "/health"}))
    assert (found.at, found.input_tokens, found.output_tokens) == (1_700_000_000.5, 20, 5)
    assert (found.session, found.key, found.parent) == ("c9", "a1", "b2")


def test_the_span_of_an_agent_is_not_a_request() -> None:
    assert requests(span({**USAGE, "gen_ai.operation.name": "invoke_agent"})) == []


def test_older_names_are_known() -> None:
    old = {"gen_ai.usage.prompt_tokens": 8, "gen_ai.usage.completion_tokens": 2}
    openinference = {"llm.token_count.prompt": 9, "llm.token_count.completion": 3}
    found = requests(span(old), span(openinference))
    assert [(each.input_tokens, each.output_tokens) for each in found] == [(8, 2), (9, 3)]


def test_prompts_are_messages_or_numbered_attributes() -> None:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Why?"}]}])
    numbered = {"gen_ai.prompt.1.content": "Why?", "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Brief"}
    one, other = requests(span({**USAGE, "gen_ai.input.messages": messages}), span({**USAGE, **numbered}))
    assert one.prompt is not None
    assert "Why?" in one.prompt
    assert other.prompt is not None
    assert other.prompt.index("Brief") < other.prompt.index("Why?")


def test_one_bad_span_does_not_hide_the_others() -> None:
    found = []
    events = OtlpLog().events(line([span(USAGE, startTimeUnixNano="soon"), span(USAGE)]))
    with pytest.raises(UnreadableLine):
        found.extend([next(events), next(events)])
    assert len(list(OtlpLog().events(line([span(USAGE)])))) == 1


@pytest.mark.parametrize("text", ["x", "{}", '{"resourceSpans": [1]}', '{"resourceSpans": [{"scopeSpans": ["x"]}]}'])
def test_lines_without_spans_are_unreadable(text: str) -> None:
    with pytest.raises(UnreadableLine):
        list(OtlpLog().events(text))
