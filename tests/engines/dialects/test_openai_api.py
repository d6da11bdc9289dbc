"""The OpenAI dialect: request bodies, and the parsing of real servers' responses."""

import itertools
import json
from collections.abc import Callable, Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Chunk, Prompt, StreamParser
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.engines.dialects.openai_api import ChatDialect, CompletionsDialect

Captured = Callable[[str], bytes]
PROMPT = Prompt(text="hello there", token_ids=(11, 12, 13), input_tokens=3, output_tokens=6)


def stream(*, chat: bool = False, continuous: bool = False) -> StreamParser:
    dialect = ChatDialect if chat else CompletionsDialect
    return dialect("m", continuous_usage=continuous).parser()


def event(**content: object) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


def text_event(text: str, **more: object) -> bytes:
    return event(choices=[{"index": 0, "text": text}], **more)


def test_a_completion_request_has_token_ids_and_continuous_usage() -> None:
    body = json.loads(CompletionsDialect("m", continuous_usage=True).body(PROMPT, WorkloadConfig(temperature=0.0)))
    assert body == {
        "model": "m",
        "prompt": [11, 12, 13],
        "max_tokens": 6,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "ignore_eos": True,
        "temperature": 0.0,
    }


def test_a_chat_request_has_text_and_only_standard_fields() -> None:
    body = json.loads(ChatDialect("m", continuous_usage=False).body(PROMPT, WorkloadConfig(ignore_eos=False)))
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello there"}],
        "max_tokens": 6,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_earlier_messages_precede_the_user_message() -> None:
    history = (("system", "Be brief."), ("user", "One?"), ("assistant", "One."))
    prompt = Prompt(text="Two?", messages=history, input_tokens=9, output_tokens=6)
    body = json.loads(ChatDialect("m").body(prompt, WorkloadConfig()))
    assert [(each["role"], each["content"]) for each in body["messages"]] == [*history, ("user", "Two?")]


def test_extra_body_has_the_last_word() -> None:
    workload = WorkloadConfig(extra_body={"min_tokens": 6, "max_tokens": 9})
    body = json.loads(CompletionsDialect("m").body(PROMPT, workload))
    assert (body["min_tokens"], body["max_tokens"]) == (6, 9)


def test_a_null_of_the_extra_body_removes_a_field_and_an_object_is_merged() -> None:
    removed = {"max_tokens": None, "stream_options": None, "ignore_eos": None, "absent": None}
    body = json.loads(ChatDialect("m", continuous_usage=True).body(PROMPT, WorkloadConfig(extra_body=removed)))
    assert set(body) == {"model", "messages", "stream"}
    merged = {"stream_options": {"continuous_usage_stats": None, "x": 1}}
    body = json.loads(ChatDialect("m", continuous_usage=True).body(PROMPT, WorkloadConfig(extra_body=merged)))
    assert body["stream_options"] == {"include_usage": True, "x": 1}


def test_a_null_inside_an_object_of_the_user_is_sent() -> None:
    schema = {"response_format": {"schema": {"enum": ["a", None], "default": None}}}
    body = json.loads(ChatDialect("m").body(PROMPT, WorkloadConfig(extra_body=schema)))
    assert body["response_format"] == schema["response_format"]


def test_the_users_max_completion_tokens_takes_the_place_of_max_tokens() -> None:
    def limits(**extra: int | None) -> dict[str, int]:
        body = json.loads(ChatDialect("m").body(PROMPT, WorkloadConfig(extra_body=extra)))
        return {name: value for name, value in body.items() if name.startswith("max_")}

    assert limits(max_completion_tokens=9) == {"max_completion_tokens": 9}
    assert limits(max_completion_tokens=9, max_tokens=8) == {"max_completion_tokens": 9, "max_tokens": 8}
    assert limits(max_completion_tokens=None) == {"max_tokens": 6}


def test_an_unknown_endpoint_is_refused_with_the_known_ones() -> None:
    assert dialect_for("chat", model="m", continuous_usage=False).path == "/v1/chat/completions"
    assert dialect_for("completions", model="m", continuous_usage=False).path == "/v1/completions"
    with pytest.raises(UsageError, match="choose completions, chat, responses"):
        dialect_for("nonsense", model="m", continuous_usage=False)


def test_vllm_completions_one_token_per_event_then_usage_then_the_end(captured: Captured) -> None:
    chunks = stream().feed(captured("vllm_completions_stream"))
    assert [chunk.text for chunk in chunks[:6]] == [" tokenizers", " quick", "bflo", "ect", "the", '"{%']
    assert [chunk.tokens for chunk in chunks] == [1, 1, 1, 1, 1, 1, 0, 0]
    assert (chunks[6].prompt_tokens, chunks[6].output_tokens) == (3, 6)
    assert chunks[7] == Chunk(final=True)


def test_vllm_chat_with_continuous_usage_counts_tokens_that_decode_to_nothing(captured: Captured) -> None:
    chunks = stream(chat=True, continuous=True).feed(captured("vllm_chat_stream_continuous_usage"))
    assert [(chunk.text, chunk.tokens) for chunk in chunks[:4]] == [("", 0), ("", 1), ("", 1), ("��LlamaFor", 1)]
    assert sum(chunk.tokens for chunk in chunks) == 6
    assert chunks[-1].final


def test_vllm_chat_without_it_counts_events_with_text(captured: Captured) -> None:
    chunks = stream(chat=True).feed(captured("vllm_chat_stream"))
    assert [(chunk.tokens, chunk.stops) for chunk in chunks[4:]] == [(0, 1), (0, 0), (0, 0)]
    assert [chunk.tokens for chunk in chunks[:4]] == [1, 1, 1, 1]
    assert chunks[-2].output_tokens == 6


def test_llama_cpp_has_the_same_dialect(captured: Captured) -> None:
    chunks = stream().feed(captured("llamacpp_completions_stream"))
    assert sum(chunk.tokens for chunk in chunks) == chunks[-2].output_tokens
    assert chunks[-1].final


def test_transformers_ends_without_an_end_marker(captured: Captured) -> None:
    chunks = stream().feed(captured("transformers_completions_stream"))
    assert (sum(chunk.tokens for chunk in chunks), chunks[-1].output_tokens, chunks[-1].final) == (6, 6, False)


def test_an_event_with_several_tokens_counts_them_all() -> None:
    parser = stream(continuous=True)
    chunks = parser.feed(
        text_event("a", usage={"prompt_tokens": 3, "completion_tokens": 1})
        + text_event("bcd", usage={"prompt_tokens": 3, "completion_tokens": 4})
        + text_event("e")
        + event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 5})
    )
    assert [chunk.tokens for chunk in chunks] == [1, 3, 1, 0]


def test_reasoning_counts_as_content() -> None:
    chunks = stream(chat=True).feed(event(choices=[{"delta": {"reasoning_content": "hm", "content": None}}]))
    assert chunks == [Chunk("hm", 1, reasoning=True)]


def test_cached_prompt_tokens_are_read_from_the_details() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 16}}
    assert stream().feed(event(choices=[], usage=usage))[0].cached_tokens == 16


@pytest.mark.parametrize("place", ["completion_tokens_details", "output_tokens_details", None])
def test_reasoning_tokens_are_read_from_either_details_or_from_sglangs_own_field(place: str | None) -> None:
    count = {"reasoning_tokens": 48}
    usage = {"prompt_tokens": 30, "completion_tokens": 60, **({place: count} if place else count)}
    assert stream().feed(event(choices=[], usage=usage))[0].reasoning_tokens == 48


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (b'data: {"choices": [\n\n', "malformed event in the stream"),
        (b'data: {"choices": "\xff\xfe"}\n\n', "malformed event in the stream"),
        (b"data: 17\n\n", "unexpected event in the stream: 17"),
        (event(error={"message": "out of\nmemory", "code": 500}), "the server reports in the stream: out of memory"),
        (event(object="error", message="no"), "the server reports in the stream: no"),
        (event(ok=False, reason="no pages"), 'the server reports in the stream: {"ok":false,"reason":"no pages"}'),
        (
            event(choices=[{"index": 0, "text": "", "finish_reason": {"type": "abort", "message": "no pages"}}]),
            "the server aborted the request: no pages",
        ),
        (event(error="no"), "the server reports in the stream: no"),
    ],
)
def test_a_broken_stream_gives_one_error_chunk_and_then_nothing(broken: bytes, words: str) -> None:
    parser = stream()
    good = text_event("a")
    chunks = parser.feed(good + broken + good)
    assert chunks[0] == Chunk("a", 1)
    assert chunks[1].error is not None
    assert words in chunks[1].error
    assert "\n" not in chunks[1].error
    assert len(chunks) == 2
    assert parser.feed(good) == []


def test_an_event_of_ten_megabytes_is_an_error_in_bounded_memory() -> None:
    parser = stream()
    chunks = [chunk for _ in range(160) for chunk in parser.feed(b"data: " + b"x" * 65_536)]
    assert [chunk.error for chunk in chunks] == ["an event of the stream is longer than 4 MiB"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vllm_err_model_404", "The model `nope` does not exist."),
        ("ray_err_model", 'Got request for model "nope".'),
    ],
)
def test_the_words_of_an_http_error(captured: Captured, name: str, words: str) -> None:
    assert CompletionsDialect("m").error_text(captured(name)).startswith(words)


def test_an_http_error_without_json_keeps_its_text_on_one_line() -> None:
    assert CompletionsDialect("m").error_text(b"<h1>502</h1>\n Bad\xff gateway") == "<h1>502</h1> Bad\ufffd gateway"
    assert len(CompletionsDialect("m").error_text(b"no " * 5000)) == 300


STREAMS = ["vllm_completions_stream", "vllm_chat_stream", "vllm_chat_stream_continuous_usage"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("continuous", [True, False])
def test_any_split_of_a_captured_stream_gives_the_same_chunks(captured: Captured, name: str, continuous: bool) -> None:
    body, chat = captured(name), "chat" in name
    whole = list(stream(chat=chat, continuous=continuous).feed(body))

    @given(st.lists(st.integers(0, len(body)), max_size=12))
    def same(cuts: Sequence[int]) -> None:
        edges = [0, *sorted(cuts), len(body)]
        parser = stream(chat=chat, continuous=continuous)
        pieces = [body[low:high] for low, high in itertools.pairwise(edges)]
        assert [chunk for piece in pieces for chunk in parser.feed(piece)] == whole

    same()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "text", "delta", "content", "usage", "completion_tokens", "error", "detail"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values, st.booleans(), st.booleans())
def test_no_event_whatever_its_shape_raises(content: object, chat: bool, continuous: bool) -> None:
    parser = stream(chat=chat, continuous=continuous)
    for chunk in parser.feed(b"data: " + json.dumps(content).encode() + b"\n\n"):
        assert 0 <= chunk.tokens < 2**31
        assert isinstance(chunk.text, str)


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    stream(continuous=True).feed(b"data: " + data + b"\n\n")
    assert "\n" not in CompletionsDialect("m").error_text(data)


CALL = '{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}'
TOOL_STREAM = [
    '{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}',
    f'{{"choices":[{{"index":0,"delta":{{"tool_calls":[{CALL}]}}}}]}}',
    *(
        f'{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{part}"}}}}]}}}}]}}'
        for part in (r"{\"city\":", r" \"Paris", r"\"}")
    ),
    '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
]


def test_names_and_arguments_of_tool_calls_are_content_with_a_token_each() -> None:
    parser = ChatDialect("m").parser(keep_texts=True)
    fed = [parser.feed(f"data: {event}\n\n".encode()) for event in [*TOOL_STREAM, "[DONE]"]]
    chunks = [chunk for some in fed for chunk in some]
    assert [chunk.text for chunk in chunks if chunk.text] == ["get_weather", '{"city":', ' "Paris', '"}']
    assert sum(chunk.tokens for chunk in chunks) == 4
    assert not any(chunk.reasoning or chunk.error for chunk in chunks)


def test_an_answer_in_one_piece_that_calls_a_tool_has_content() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    (chunk,) = ChatDialect("m").parse_response(orjson.dumps({"choices": [{"index": 0, "message": message}]}))
    assert (chunk.text, chunk.tokens, chunk.error) == ('get_weather{"city": "Paris"}', 1, None)


@pytest.mark.parametrize("calls", [None, 3, [], [None], [{}], [{"function": 3}], [{"function": {"name": 3}}]])
def test_odd_tool_calls_are_no_content(calls: object) -> None:
    event = orjson.dumps({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
    assert not any(chunk.tokens for chunk in ChatDialect("m").parser(keep_texts=True).feed(b"data: %b\n\n" % event))
