"""The Responses API: request bodies, and the parsing of its typed events."""

import json
from collections.abc import Callable

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.dialect_registry import dialect_for

Captured = Callable[[str], bytes]
PROMPT = Prompt(text="hello there", token_ids=(11, 12, 13), input_tokens=3, output_tokens=6)
RESPONSES = dialect_for("responses", model="m", continuous_usage=True)


def event(kind: str, **content: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **content})}\n\n".encode()


def delta(text: str, kind: str = "response.output_text.delta") -> bytes:
    return event(kind, item_id="msg_1", output_index=0, content_index=0, delta=text, sequence_number=4)


@pytest.mark.parametrize("stream", [True, False])
def test_a_request_has_text_and_max_output_tokens(stream: bool) -> None:
    workload = WorkloadConfig(ignore_eos=False, stream=stream, temperature=0.5, extra_body={"store": False})
    assert RESPONSES.path == "/v1/responses"
    assert json.loads(RESPONSES.body(PROMPT, workload)) == {
        "model": "m",
        "input": "hello there",
        "max_output_tokens": 6,
        "stream": stream,
        "temperature": 0.5,
        "store": False,
    }
    assert json.loads(RESPONSES.body(PROMPT, WorkloadConfig()))["ignore_eos"] is True


def test_earlier_messages_are_sent_as_input_messages() -> None:
    prompt = Prompt(text="and you?", messages=(("user", "hi"), ("assistant", "ho")), input_tokens=3, output_tokens=6)
    assert json.loads(RESPONSES.body(prompt, WorkloadConfig()))["input"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
        {"role": "user", "content": "and you?"},
    ]


def test_vllms_reasoning_and_content_are_separated_and_the_completed_event_ends_the_stream(captured: Captured) -> None:
    chunks = RESPONSES.parser(keep_texts=True).feed(captured("vllm_responses_reasoning_stream"))
    assert [(chunk.text, chunk.tokens, chunk.reasoning) for chunk in chunks] == [
        (" brown", 1, True),
        ('=["', 1, False),
        ("gin", 1, False),
        ("���LLM", 1, False),
        ("hat", 1, False),
        ("</think>", 1, False),
        ("", 0, False),
    ]
    assert chunks[-1] == Chunk("", 0, True, 5, 12, 0, reasoning_tokens=0)


def test_openais_events_with_all_counts() -> None:
    usage = {
        "input_tokens": 36,
        "input_tokens_details": {"cached_tokens": 32},
        "output_tokens": 87,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": 123,
    }
    chunks = RESPONSES.parser(keep_texts=True).feed(
        event("response.created", response={"id": "resp_1", "status": "in_progress", "error": None, "usage": None})
        + event("response.output_item.added", output_index=0, item={"type": "message", "content": []})
        + delta("hm", "response.reasoning_summary_text.delta")
        + delta("")
        + delta("Hi")
        + event("response.output_text.done", text="Hi")
        + event("response.completed", response={"id": "resp_1", "status": "completed", "error": None, "usage": usage})
    )
    assert chunks == [
        Chunk("hm", 1, reasoning=True),
        Chunk("Hi", 1),
        Chunk(final=True, prompt_tokens=36, output_tokens=87, cached_tokens=32, reasoning_tokens=64),
    ]


def test_an_answer_cut_off_at_its_limit_is_complete() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": None}
    chunks = RESPONSES.parser(keep_texts=True).feed(delta("Hi") + event("response.incomplete", response=cut))
    assert chunks == [Chunk("Hi", 1), Chunk(final=True)]


@pytest.mark.parametrize(
    "broken",
    [
        event(
            "response.failed", response={"status": "failed", "error": {"code": "server_error", "message": "no luck"}}
        ),
        event("error", code="ERR_SOMETHING", message="no luck", param=None),
        b'data: {"error":{"message":"no luck","code":500}}\n\n',
    ],
)
def test_a_failure_in_the_stream_ends_it_with_the_servers_words(broken: bytes) -> None:
    chunks = RESPONSES.parser(keep_texts=True).feed(delta("Hi") + broken + delta("Hi"))
    assert [chunk.error for chunk in chunks] == [None, "the server reports in the stream: no luck"]


def test_an_answer_in_one_piece(captured: Captured) -> None:
    (chunk,) = RESPONSES.parse_response(captured("vllm_responses_whole"))
    assert chunk.text == '=["gin���LLMhat</think> brown�'
    assert chunk.answer == '=["gin���LLMhat</think>'  # the rest is reasoning
    assert (chunk.tokens, chunk.final, chunk.prompt_tokens, chunk.output_tokens) == (12, True, 5, 12)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "malformed response"),
        (b"[]", "response body has no completion"),
        (b'{"error":{"message":"busy"},"output":[]}', "response body has no completion: busy"),
        (b'{"output":{}}', "response body has no completion"),
    ],
)
def test_a_body_without_a_completion_is_an_error(body: bytes, words: str) -> None:
    (chunk,) = RESPONSES.parse_response(body)
    assert words in (chunk.error or "")


def test_the_words_of_an_http_error(captured: Captured) -> None:
    assert RESPONSES.error_text(captured("vllm_responses_err")).startswith("The model `nope` does not exist.")
