"""Requests of several sources become one load, and what they lack is counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from servetop.core.errors import UsageError
from servetop.workload.shape.recorded_load import RecordedLoad, ShapeSettings, read_load

SALT = b"0123456789abcdef"


def load_of(folder: Path, *texts: str, **settings: Any) -> RecordedLoad:
    paths = [folder / f"{number}.log" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return read_load([str(path) for path in paths], ShapeSettings(salt=SALT, **settings))


def row(at: float, **values: object) -> str:
    return json.dumps({"ts": at, "prompt_tokens": 10, "completion_tokens": 5, **values}) + "\n"


def test_sources_are_merged_by_time(tmp_path: Path) -> None:
    load = load_of(tmp_path, row(1e9 + 7.25, prompt_tokens=3) + row(1e9 + 1.5, prompt_tokens=1), row(1e9 + 2.75))
    assert [(each.at, each.input_tokens) for each in load.requests] == [(0.0, 1), (1.25, 10), (5.75, 3)]
    assert [(each.number, each.requests) for each in load.sources] == [(1, 2), (2, 1)]


def test_what_is_unreadable_is_counted_with_its_first_line(tmp_path: Path) -> None:
    (source,) = load_of(tmp_path, row(1) + "broken {\n" + row(2) + '{"no": "time"}\n').sources
    assert (source.requests, source.unreadable, source.first_unreadable) == (2, 2, 2)


def test_missing_lengths_are_assumed_estimated_or_left_out(tmp_path: Path) -> None:
    rows = (
        row(1, completion_tokens=None)
        + row(2, prompt_tokens=None, prompt="word " * 40)
        + row(3, prompt_tokens=None)
        + row(4, completion_tokens=0)
    )
    load = load_of(tmp_path, rows, output_len=77)
    assert [(each.input_tokens, each.output_tokens) for each in load.requests] == [(10, 77), (50, 5)]
    assert (load.assumed_outputs, load.estimated_inputs, load.left_out_inputs, load.without_output) == (1, 1, 1, 1)
    assumed = load_of(tmp_path, rows, input_len=33)
    assert ([each.input_tokens for each in assumed.requests], assumed.assumed_inputs) == ([10, 50, 33], 1)


def test_whole_seconds_are_spread_in_order(tmp_path: Path) -> None:
    load = load_of(tmp_path, "".join(row(1_700_000_000 + at // 4, prompt_tokens=at + 1) for at in range(12)))
    times = [each.at for each in load.requests]
    assert ([each.input_tokens for each in load.requests], load.spread) == (list(range(1, 13)), 12)
    assert times == sorted(set(times))
    assert times[-1] < 3


def test_whole_seconds_among_finer_times_are_kept(tmp_path: Path) -> None:
    load = load_of(tmp_path, row(1_700_000_000) + row(1_700_000_001.5) + row(1_700_000_002))
    assert ([each.at for each in load.requests], load.spread) == ([0.0, 1.5, 2.0], 0)


def test_equal_beginnings_and_sessions_are_found_over_sources(tmp_path: Path) -> None:
    text = "The same system prompt for all. " * 40
    one = row(1, prompt=text + "one", prompt_tokens=320, session_id="anna")
    other = row(2, prompt=text + "other", prompt_tokens=320, session_id="anna")
    load = load_of(tmp_path, one, other)
    first, second = load.requests
    assert (first.blocks[:4], first.session) == (second.blocks[:4], second.session)
    assert first.blocks != second.blocks
    assert load.characters_per_token == pytest.approx(4, rel=0.05)


def test_a_span_within_a_request_is_a_part_of_it(tmp_path: Path) -> None:
    def span(name: str, parent: str) -> dict[str, object]:
        usage = [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9"}}]
        return {"spanId": name, "parentSpanId": parent, "startTimeUnixNano": "1700000000000000000", "attributes": usage}

    spans = [span("server", "gateway"), span("gateway", "web"), span("alone", "web")]
    load = load_of(tmp_path, json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    assert len(load.requests) == 2


def test_counted_outputs_of_vllm_replace_estimates(tmp_path: Path) -> None:
    line = "INFO 11-28 14:03:1{} [logger.py:39] "
    text = (
        line.format(1) + "Received request a: prompt: 'Why?', params: SamplingParams(), prompt_token_ids: [1, 2].\n"
        + line.format(1) + "Received request b: prompt: 'How?', params: SamplingParams(), prompt_token_ids: [1, 3].\n"
        + line.format(2) + "Generated response a: output: 'a b c d e f g h', finish_reason: stop\n"
        + line.format(2) + "Generated response a details: output_token_ids: [5, 6, 7]\n"
        + line.format(2) + "Generated response b: output: 'four words of text', finish_reason: stop\n"
        + line.format(2) + "Generated response unknown: output: 'x', finish_reason: stop\n"
    )  # fmt: skip
    load = load_of(tmp_path, text)
    assert ([each.output_tokens for each in load.requests], load.estimated_outputs) == ([3, 5], 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (row(1, prompt_tokens=None), "none of 1 requests has a prompt length"),
        (row(1, completion_tokens=0), "all 1 requests have 0 output tokens"),
        ("{}\n" + "x\n", "no request in 2 unreadable lines (first: line 1 of source 1, read as json)"),
        ("INFO 11-28 14:03:11 [a.py:1] Started\n", "the sources have no requests"),
        (row(1) + row(1.7e9), "about 54 years apart"),
        ('{"timestamp":0,"input_length":9,"output_length":9,"hash_ids":[1]}', "source 1 has blocks of 512"),
    ],
)  # fmt: skip
def test_a_source_without_a_load_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        load_of(tmp_path, text, block_tokens=100)
    assert reason in str(refused.value)
