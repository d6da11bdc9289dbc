"""Fields of JSON logs are found by paths."""

import pytest

from servetop.core.errors import UsageError
from servetop.workload.shape.field_map import FieldMap, parse_fields, value_at

ROW = {
    "ts": 5,
    "request": {"body": '{"messages": [{"role": "user", "content": "Hi"}], "tools": ["t"]}'},
    "response": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    "headers": {"x-session-id": "s"},
    "gen_ai.usage": {"input_tokens": 11},
    "list": [{"a": 1}, {"a": 2}],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("response.usage.prompt_tokens", 7),
        ("request.body.messages.0.content", "Hi"),
        ("gen_ai.usage.input_tokens", 11),
        ("list.1.a", 2),
        ("list.2.a", None),
        ("ts.deeper", None),
        ("request.body.tools+request.body.messages", [["t"], [{"role": "user", "content": "Hi"}]]),
        ("none+neither", None),
    ],
)
def test_a_path_leads_to_a_value(path: str, value: object) -> None:
    assert value_at(ROW, path) == value


def test_fields_of_gateways_are_known() -> None:
    fields = FieldMap()
    names = ("timestamp", "input_length", "output_length", "session", "duration")
    assert [fields.value(name, ROW) for name in names] == [5, 7, 3, "s", None]
    assert fields.value("prompt", ROW) == [{"role": "user", "content": "Hi"}]


def test_a_given_path_replaces_the_known_ones() -> None:
    fields = parse_fields("input_length=gen_ai.usage.input_tokens, timestamp = at")
    assert fields.value("input_length", ROW) == 11
    assert fields.value("timestamp", ROW) is None
    assert fields.value("output_length", ROW) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("input_lenght=a", "unknown 'input_lenght': did you mean input_length?"),
        ("colour=a", "unknown 'colour': known are timestamp, duration"),
        ("prompt", "prompt has no path: give one"),
        ("prompt=a,prompt=b", "prompt is given twice: join paths with +"),
    ],
)
def test_a_wrong_map_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match="--fields") as refused:
        parse_fields(text)
    assert reason in str(refused.value)
