"""Dialects of a single engine: llama.cpp's `/completion` and Triton's `generate_stream`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Dialect, Prompt
from servetop.engines.dialects.llama_cpp_completion import LlamaCppDialect
from servetop.engines.dialects.triton_generate import TritonDialect

Captured = Callable[[str], bytes]
PROMPT = Prompt(text="the quick", token_ids=(5, 7), input_tokens=2, output_tokens=6)
LLAMA_STREAM, TRITON_STREAM = "../../data/llama.cpp/completion_stream", "../../data/triton/generate_stream"


def requested(dialect: Dialect, **options: object) -> dict[str, object]:
    request: dict[str, object] = json.loads(dialect.body(PROMPT, WorkloadConfig(**options)))  # type: ignore[arg-type]
    return request


def chunks_of(dialect: Dialect, body: bytes, size: int) -> Sequence[Chunk]:
    parser = dialect.parser(keep_texts=True)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return [*(chunk for piece in pieces for chunk in parser.feed(piece)), *parser.finish()]


def test_llama_cpp_takes_token_ids_and_can_ignore_the_end() -> None:
    dialect = LlamaCppDialect("tiny")
    assert dialect.path == "/completion"
    expected = {"model": "tiny", "prompt": [5, 7], "n_predict": 6, "stream": True, "ignore_eos": True}
    assert requested(dialect) == expected
    body = requested(dialect, ignore_eos=False, temperature=0.5, stream=False, extra_body={"n_predict": 9})
    assert body == {"model": "tiny", "prompt": [5, 7], "n_predict": 9, "stream": False, "temperature": 0.5}


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_llama_cpp_counts_a_token_that_decodes_to_nothing_and_ends_by_itself(captured: Captured, size: int) -> None:
    chunks = chunks_of(LlamaCppDialect("tiny"), captured(LLAMA_STREAM), size)
    assert [chunk.text for chunk in chunks] == ["1024", "\x1e", "", "_", "bed", ""]
    assert [chunk.tokens for chunk in chunks] == [1, 1, 1, 1, 1, 0]
    assert [chunk.final for chunk in chunks] == [False] * 5 + [True]
    assert (chunks[-1].prompt_tokens, chunks[-1].output_tokens) == (3, 5)


def test_llama_cpp_whole_answers_and_errors(captured: Captured) -> None:
    last = captured(LLAMA_STREAM).split(b"data: ")[-1]
    (whole,) = LlamaCppDialect("tiny").parse_response(last.replace(b'"content":""', b'"content":"all of it"'))
    assert (whole.text, whole.tokens, whole.final, whole.prompt_tokens, whole.output_tokens) == (
        "all of it", 5, True, 3, 5,
    )  # fmt: skip
    for broken in (b"<html>", b"[]", b'{"error":{"message":"no"}}'):
        assert LlamaCppDialect("tiny").parse_response(broken)[0].error
    words = LlamaCppDialect("tiny").error_text(captured("../../data/llama.cpp/err_ctx_exceeded"))
    assert words.startswith("request (8000 tokens) exceeds the available context size (1024 tokens)")


def test_triton_requests_use_the_field_names_of_each_kind_of_model() -> None:
    ensemble = TritonDialect("ensemble")
    assert ensemble.path == "/v2/models/ensemble/generate_stream"
    assert requested(ensemble, temperature=0.5) == {
        "text_input": "the quick", "max_tokens": 6, "stream": True, "min_tokens": 6, "temperature": 0.5,
    }  # fmt: skip
    newer = TritonDialect("tensorrt_llm")
    assert newer.path == "/v2/models/tensorrt_llm/generate_stream"
    assert requested(newer, temperature=0.5) == {
        "text_input": "the quick", "sampling_param_max_tokens": 6, "streaming": True, "sampling_param_temperature": 0.5,
    }  # fmt: skip
    assert requested(ensemble, ignore_eos=False, extra_body={"end_id": -1}) == {
        "text_input": "the quick", "max_tokens": 6, "stream": True, "end_id": -1,
    }  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_triton_counts_events_with_text_and_its_answer_ends_with_its_body(captured: Captured, size: int) -> None:
    chunks = chunks_of(TritonDialect("ensemble"), captured(TRITON_STREAM), size)
    assert [(chunk.text, chunk.tokens) for chunk in chunks] == [
        (" tok1", 1), (" tok2", 1), (" tok3", 1), (" tok4", 1), ("", 0),
    ]  # fmt: skip
    assert [chunk.final for chunk in chunks] == [False] * 4 + [True]


@pytest.mark.parametrize("cut", [0, 30, -1])
def test_a_triton_answer_without_a_token_or_with_half_an_event_has_not_ended(captured: Captured, cut: int) -> None:
    body = captured(TRITON_STREAM)[:cut]
    assert not any(chunk.final for chunk in chunks_of(TritonDialect("ensemble"), body, 100))


def test_triton_errors_with_http_200_are_found_in_both_forms(captured: Captured) -> None:
    dialect, error = TritonDialect("ensemble"), captured("../../data/triton/generate_err_decoupled")
    (whole,) = dialect.parse_response(error)
    assert "generate expects model to produce exactly 1 response" in (whole.error or "")
    (event,) = chunks_of(dialect, b"data: " + error.strip() + b"\n\n", 1000)
    assert "generate expects model to produce exactly 1 response" in (event.error or "")
    assert dialect.parse_response(captured("../../data/triton/generate"))[0] == Chunk(" tok1 tok2 tok3 tok4", 1, True)
    assert "missing required input(s) ['max_tokens']" in dialect.error_text(
        captured("../../data/triton/err_missing_input")
    )


def test_an_output_without_fixed_length_is_a_list_of_texts() -> None:
    (chunk,) = TritonDialect("m").parser(keep_texts=True).feed(b'data: {"text_output":[" a","b"]}\n\n')
    assert (chunk.text, chunk.tokens) == (" ab", 1)


@pytest.mark.parametrize("dialect", [LlamaCppDialect("m"), TritonDialect("m")])
def test_malformed_responses_are_reported_not_raised(dialect: Dialect) -> None:
    (chunk,) = dialect.parser(keep_texts=False).feed(b"data: {broken\n\n")
    assert "malformed event in the stream" in (chunk.error or "")
    assert dialect.parse_response(b"{")[0].error
