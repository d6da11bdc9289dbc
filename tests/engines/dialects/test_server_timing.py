"""The server's own times of a request are read from the last event or from the complete response."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.interfaces.dialect import Chunk, ServerTiming
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.engines.dialects.json_event import timing_of

LLAMA_CPP = Path(__file__).parents[1] / "data" / "llama.cpp"
VLLM = {
    "time_to_first_token_ms": 85.2,
    "generation_time_ms": 1240.5,
    "queue_time_ms": 12.3,
    "mean_itl_ms": 9.1,
    "tokens_per_second": 103.2,
}
"""As vLLM documents it (docs/features/per_request_metrics.md)."""
USAGE = {"prompt_tokens": 42, "completion_tokens": 1, "total_tokens": 43}


def events(*contents: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in contents) + b"data: [DONE]\n\n"


def streamed(body: bytes, *, endpoint: str = "completions", continuous: bool = False) -> list[Chunk]:
    dialect = dialect_for(endpoint, model="m", continuous_usage=continuous)
    return list(dialect.parser(keep_texts=True).feed(body))


def captured(name: str) -> bytes:
    text = (LLAMA_CPP / name).read_bytes()
    return text[text.index(b"data: ") :]


def timings(chunks: list[Chunk]) -> list[ServerTiming]:
    return [chunk.timing for chunk in chunks if chunk.timing is not None]


@pytest.mark.parametrize(
    ("name", "endpoint", "prefill", "decode"),
    [
        ("v1_completions_stream.txt", "completions", 0.269, 0.914),
        ("chat_stream.txt", "chat", 3.635, 1.124),
        ("completion_stream.txt", "servetop.engines.dialects.llama_cpp_completion:LlamaCppDialect", 0.259, 0.81),
    ],
)
def test_llama_cpp_reports_prefill_and_decode_times_but_no_queue_time(
    name: str, endpoint: str, prefill: float, decode: float
) -> None:
    chunks = streamed(captured(name), endpoint=endpoint)
    assert chunks[-1].final
    assert timings(chunks)[-1] == ServerTiming(None, prefill / 1000, decode / 1000)


@pytest.mark.parametrize("continuous", [False, True])
def test_vllm_reports_all_three_times_with_the_final_counts(continuous: bool) -> None:
    counts = {"usage": USAGE} if continuous else {}
    text = {"choices": [{"index": 0, "text": " a"}], **counts}
    chunks = streamed(events(text, {"choices": [], "usage": USAGE, "metrics": VLLM}), continuous=continuous)
    assert timings(chunks) == [ServerTiming(0.0123, 0.0852, 1.2405)]
    assert sum(chunk.tokens for chunk in chunks) == 1


def test_without_the_flag_no_times_are_reported() -> None:
    for metrics in (None, dict.fromkeys(VLLM), {}):
        assert timings(streamed(events({"choices": [], "usage": USAGE, "metrics": metrics}))) == []
    assert timings(streamed(events({"choices": [], "usage": USAGE}))) == []


def test_a_complete_response_reports_times_too() -> None:
    text = (LLAMA_CPP / "v1_completions_nonstream.txt").read_bytes()
    dialect = dialect_for("completions", model="m", continuous_usage=False)
    (chunk,) = dialect.parse_response(text[text.index(b"{") :])
    assert chunk.timing == ServerTiming(None, 0.003214, 0.000571)


def test_the_responses_api_reports_times_in_its_last_event() -> None:
    response = {"output": [], "usage": {"input_tokens": 5, "output_tokens": 1}, "metrics": VLLM}
    body = events(
        {"type": "response.output_text.delta", "delta": "a"}, {"type": "response.completed", "response": response}
    )
    assert timings(streamed(body, endpoint="responses")) == [ServerTiming(0.0123, 0.0852, 1.2405)]


def test_a_server_that_times_every_event_is_read_exactly() -> None:
    """llama.cpp with `timings_per_token`: such events have no shape, so none of them loses its times."""
    contents = [
        {"choices": [{"index": 0, "text": f" {n}"}], "usage": USAGE, "timings": {"prompt_ms": 1.0, "predicted_ms": n}}
        for n in range(1, 5)
    ]
    reported = timings(streamed(events(*contents)))
    assert [each.decode for each in reported] == [0.001, 0.002, 0.003, 0.004]


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*VLLM, "prompt_ms"]), inner),
)


@given(st.dictionaries(st.sampled_from(["metrics", "timings"]), junk))
def test_any_value_is_parsed_to_seconds_or_unknown(content: dict[str, Any]) -> None:
    timing = timing_of(content)
    assert timing is None or all(value is None or 0 <= value < 1e6 for value in timing)


TRITON = "servetop.engines.dialects.triton_generate:TritonDialect"
INSTANTS = ("arrival_time_ns", "first_scheduled_time_ns", "first_token_time_ns", "last_token_time_ns")


@pytest.mark.parametrize(
    ("instants", "reported"),
    [
        ((10_000_000, 12_000_000, 15_000_000, 45_000_000), [ServerTiming(0.002, 0.003, 0.03)]),
        ((10_000_000, 12_000_000, 11_000_000, 45_000_000), []),  # out of order: not believed
        ((10_000_000, 12_000_000, 15_000_000), []),
        ((), []),
    ],
)
def test_triton_reports_timestamps_if_performance_metrics_are_requested(
    instants: tuple[int, ...], reported: list[ServerTiming]
) -> None:
    event = {"model_name": "ensemble", "text_output": " a", **dict(zip(INSTANTS, instants, strict=False))}
    assert timings(streamed(events(event), endpoint=TRITON)) == reported
