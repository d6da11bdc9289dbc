"""The native APIs of TGI, SGLang and DeepSpeed-MII: request bodies, streams, complete responses, errors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Dialect, Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.engines.dialects.mii_generate import MiiDialect
from servetop.engines.dialects.sglang_generate import SglangDialect
from servetop.engines.dialects.tgi_generate import TgiDialect

TGI_STREAM = (
    b'data:{"index":1,"token":{"id":263,"text":" a","logprob":-0.3,"special":false},"generated_text":null,'
    b'"details":null}\n\n'
    b'data:{"index":2,"token":{"id":7,"text":"","logprob":-1.5,"special":false},"generated_text":null,"details":null}\n\n'
    b'data:{"index":3,"token":{"id":9,"text":"\xe4\xb8\x96","logprob":-0.1,"special":false},'
    b'"generated_text":" a\xe4\xb8\x96","details":{"finish_reason":"length","generated_tokens":3,"seed":null,'
    b'"input_length":16}}\n\n'
)
SGLANG_STREAM = (
    b'data: {"text":" a","output_ids":[263],"meta_info":{"id":"7f","finish_reason":null,"prompt_tokens":16,'
    b'"completion_tokens":1,"cached_tokens":4}}\n\n'
    b'data: {"text":" a","output_ids":[263,7],"meta_info":{"id":"7f","finish_reason":null,"prompt_tokens":16,'
    b'"completion_tokens":2,"cached_tokens":4}}\n\n'
    b'data: {"text":" a \xe4\xb8\x96","output_ids":[263,7,9,8],"meta_info":{"id":"7f","finish_reason":{"type":"length",'
    b'"length":4},"prompt_tokens":16,"completion_tokens":4,"cached_tokens":4,"e2e_latency":0.2}}\n\n'
    b"data: [DONE]\n\n"
)
MII_STREAM = b'data: {"text": [" a"]}\n\ndata: {"text": [""]}\n\ndata: {"text": [" \\u4e16"]}\n\ndata: [DONE]\n\n'

STREAMS = {
    "tgi": (TGI_STREAM, [(" a", 1), ("世", 1)], (16, 3, None)),
    "sglang": (SGLANG_STREAM, [(" a", 1), ("", 1), (" 世", 2)], (16, 4, 4)),
    "mii": (MII_STREAM, [(" a", 1), (" 世", 1)], (None, None, None)),
}
DIALECTS: dict[str, type[TgiDialect] | type[SglangDialect] | type[MiiDialect]] = {
    "tgi": TgiDialect,
    "sglang": SglangDialect,
    "mii": MiiDialect,
}


def requested(dialect: Dialect, ids: tuple[int, ...] | None = None, **workload: Any) -> dict[str, Any]:
    prompt = Prompt(text="Why?", token_ids=ids, input_tokens=2, output_tokens=5)
    body: dict[str, Any] = json.loads(dialect.body(prompt, WorkloadConfig(**workload)))
    return body


def reported(dialect: Dialect, pieces: Sequence[bytes]) -> list[Chunk]:
    parser = dialect.parser(keep_texts=True)
    return [chunk for piece in pieces for chunk in parser.feed(piece)]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_in_pieces_of_any_size_gives_its_texts_tokens_counts_and_end(name: str) -> None:
    body, tokens, counts = STREAMS[name]
    dialect: Dialect = DIALECTS[name]("m")

    @given(st.lists(st.integers(0, len(body)), max_size=9))
    def same(places: Sequence[int]) -> None:
        edges = [0, *sorted(places), len(body)]
        chunks = reported(dialect, [body[low:high] for low, high in itertools.pairwise(edges)])
        assert [(chunk.text, chunk.tokens) for chunk in chunks if chunk.tokens] == tokens
        assert [chunk.final for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        last = next((chunk for chunk in reversed(chunks) if chunk.output_tokens is not None), Chunk())
        assert (last.prompt_tokens, last.output_tokens, last.cached_tokens) == counts

    same()


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_cut_before_its_last_event_has_no_end(name: str) -> None:
    body = STREAMS[name][0]
    whole_events = body[: body.rstrip().rindex(b"\n\n") + 2]
    assert not any(chunk.final for chunk in reported(DIALECTS[name]("m"), [whole_events]))


def test_sglangs_incremental_texts_are_taken_as_they_are() -> None:
    events = SGLANG_STREAM.replace("a 世".encode(), " 世".encode()).replace(
        b'"text":" a","output_ids":[263,7]', b'"text":""'
    )
    texts = [chunk.text for chunk in reported(SglangDialect("m"), [events]) if chunk.tokens]
    assert texts == [" a", "", "  世"]


def test_tgi_requests_ask_for_details_and_decode_greedily_without_a_temperature() -> None:
    body = requested(TgiDialect("m"), temperature=0.0, extra_body={"parameters": {"top_k": 3}})
    parameters = {"max_new_tokens": 5, "details": True, "do_sample": False, "top_k": 3}
    assert body == {"inputs": "Why?", "parameters": parameters, "stream": True}
    assert requested(TgiDialect("m"), temperature=0.5)["parameters"]["temperature"] == 0.5


@pytest.mark.parametrize("name", STREAMS)
def test_every_field_of_a_request_can_be_removed(name: str) -> None:
    dialect = DIALECTS[name]("m")
    fields = requested(dialect, ignore_eos=True, temperature=0.5)
    for field in fields:
        assert set(requested(dialect, ignore_eos=True, temperature=0.5, extra_body={field: None})) == set(fields) - {
            field
        }


def test_parameters_of_an_engines_own_api_can_be_removed() -> None:
    body = requested(SglangDialect("m"), ignore_eos=True, extra_body={"sampling_params": {"ignore_eos": None, "n": 2}})
    assert body["sampling_params"] == {"max_new_tokens": 5, "n": 2}
    body = requested(TgiDialect("m"), extra_body={"parameters": {"details": None}})
    assert body["parameters"] == {"max_new_tokens": 5}


def test_sglang_requests_have_token_ids_if_the_prompt_has_them() -> None:
    body = requested(SglangDialect("m"), (1, 2), ignore_eos=True, temperature=0.0)
    assert body["input_ids"] == [1, 2]
    assert "text" not in body
    assert body["sampling_params"] == {"max_new_tokens": 5, "ignore_eos": True, "temperature": 0.0}
    assert requested(SglangDialect("m"))["text"] == "Why?"


def test_mii_requests_set_min_tokens_to_the_output_length() -> None:
    body = requested(MiiDialect("m"), ignore_eos=True, stream=False)
    assert body == {"prompt": "Why?", "max_tokens": 5, "min_tokens": 5, "stream": False}


def test_completion_requests_to_servers_without_token_ids_have_text() -> None:
    dialect = dialect_for(
        "servetop.engines.dialects.openai_api:TextCompletionsDialect", model="m", continuous_usage=False
    )
    assert requested(dialect, (1, 2))["prompt"] == "Why?"


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        (
            "tgi",
            b'[{"generated_text":" a b","details":{"generated_tokens":2,"prefill":[{"id":1},{"id":5}]}}]',
            Chunk(" a b", 2, True, 2, 2),
        ),
        ("tgi", b'{"generated_text":" a b"}', Chunk(" a b", 1, True)),
        (
            "sglang",
            b'{"text":" a b","meta_info":{"prompt_tokens":16,"completion_tokens":2,"cached_tokens":0}}',
            Chunk(" a b", 2, True, 16, 2, 0),
        ),
        ("mii", b'{"text": [" a b"]}', Chunk(" a b", 1, True)),
    ],
)
def test_an_answer_in_one_piece_is_one_chunk(name: str, body: bytes, expected: Chunk) -> None:
    assert DIALECTS[name]("m").parse_response(body) == [expected]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("body", [b"", b"[]", b"7", b'{"text":7}', b'{"error":"Model is overloaded"}', b"<html>"])
def test_a_response_without_a_completion_is_an_error(name: str, body: bytes) -> None:
    (chunk,) = DIALECTS[name]("m").parse_response(body)
    assert chunk.error is not None
    assert not chunk.final


@pytest.mark.parametrize(
    ("name", "event", "words"),
    [
        ("tgi", b'data:{"error":"Model is overloaded","error_type":"overloaded"}\n\n', "Model is overloaded"),
        ("sglang", b'data: {"error":{"message":"too long"}}\n\n', "too long"),
        (
            "sglang",
            b'data: {"text":"","meta_info":{"finish_reason":{"type":"abort","message":"out of pages"}}}\n\n',
            "the server aborted the request: out of pages",
        ),
        ("mii", b"data: nonsense\n\n", "malformed event in the stream"),
    ],
)
def test_an_error_in_the_stream_is_reported(name: str, event: bytes, words: str) -> None:
    assert words in (reported(DIALECTS[name]("m"), [event])[-1].error or "")


def test_refusals_are_read_in_each_engines_shape() -> None:
    overloaded = b'{"error":"Model is overloaded","error_type":"overloaded"}'
    assert TgiDialect("m").error_text(overloaded) == "Model is overloaded"
    unknown = b'{"object":"error","message":"Model \\"x\\" not found.","code":40301}'
    assert MiiDialect("m").error_text(unknown) == 'Model "x" not found.'
