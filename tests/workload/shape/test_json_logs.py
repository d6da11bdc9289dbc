"""Access logs and traces of JSON lines become requests."""

import json
from collections.abc import Iterable

import pytest

from servetop.workload.datasets.trace_formats import JSON_LINES
from servetop.workload.shape.field_map import FieldMap, parse_fields
from servetop.workload.shape.json_logs import AccessLog, TraceLog
from servetop.workload.shape.logged_request import LoggedEvent, LoggedRequest, UnreadableLine


def only(events: Iterable[LoggedEvent]) -> LoggedRequest:
    (event,) = events
    assert isinstance(event, LoggedRequest)
    return event


def test_a_line_of_an_openai_like_gateway_is_a_request() -> None:
    row = {
        "timestamp": "2026-11-28T14:00:00.25Z",
        "request": {"messages": [{"role": "user", "content": "Hi"}]},
        "response": {"usage": {"prompt_tokens": 9, "completion_tokens": 4}},
        "session_id": 12,
    }
    found = only(AccessLog(FieldMap()).events(json.dumps(row)))
    assert (found.input_tokens, found.output_tokens, found.session, found.resolution) == (9, 4, "12", 0.0)
    assert found.prompt is not None
    assert "Hi" in found.prompt
    assert "Hi" not in repr(found)


def test_a_duration_is_subtracted_from_the_time_of_the_end() -> None:
    log = AccessLog(parse_fields("timestamp=end,duration=took,input_length=n"))
    assert only(log.events('{"end": 1700000010.5, "took": "2.5", "n": 1}')).at == 1_700_000_008.0


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[1]",
        "{}",
        '{"ts": 1, "prompt_tokens": -1}',
        '{"ts": 1, "prompt_tokens": 1.5}',
        '{"ts": 1, "prompt_tokens": "many"}',
        '{"ts": 1, "prompt_tokens": 1e300}',
        '{"ts": {}, "prompt_tokens": 1}',
        "[" * 100_000,
    ],
)
def test_other_lines_are_unreadable(line: str) -> None:
    with pytest.raises(UnreadableLine):
        list(AccessLog(FieldMap()).events(line))


@pytest.mark.parametrize("took", ['"x"', "-1", "1e9", "[]"])
def test_an_impossible_duration_is_unreadable(took: str) -> None:
    with pytest.raises(UnreadableLine):
        list(AccessLog(parse_fields("duration=took")).events(f'{{"ts": 1, "took": {took}}}'))


def test_traces_have_blocks_and_their_sizes() -> None:
    row = {"timestamp": 3000, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}
    found = only(TraceLog().events(json.dumps(row)))
    assert (found.at, found.blocks, found.block_tokens, found.resolution) == (3.0, (1, 2), 512, 3.0)
    timed = only(TraceLog(JSON_LINES[1]).events(json.dumps(row)))
    assert (timed.at, timed.block_tokens) == (3000.0, 16)
    shaped = only(TraceLog().events(json.dumps({**row, "block_size": 32, "session_id": 4})))
    assert (shaped.block_tokens, shaped.session, shaped.resolution) == (32, 4, 0.0)


def test_a_malformed_row_of_a_trace_is_unreadable() -> None:
    with pytest.raises(UnreadableLine):
        list(TraceLog().events('{"timestamp": 1, "input_length": 0, "output_length": 5, "hash_ids": []}'))
