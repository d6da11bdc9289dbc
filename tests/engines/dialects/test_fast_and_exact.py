"""Parsing events by their shape gives the same results as the exact parser, for any input."""

import itertools
import json
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.json_event import Reader, read_chat, read_completion
from servetop.engines.dialects.llama_cpp_completion import read_llama_cpp
from servetop.engines.dialects.mii_generate import read_mii
from servetop.engines.dialects.openai_responses import read_response
from servetop.engines.dialects.stream_parser import EventStream
from servetop.engines.dialects.tgi_generate import read_tgi
from servetop.engines.dialects.transformers_api import read_transformers_chat, read_transformers_completion
from servetop.engines.dialects.triton_generate import read_triton
from tests.engines.dialects.rendered_events import (
    CHATS,
    COMPLETIONS,
    LLAMA_CPP,
    MII,
    RESPONSES,
    TGI,
    TRITON,
    Render,
    Renders,
    mii_own,
    tgi_own,
    vllm,
    vllm_counted,
)

Captured = Callable[[str], bytes]

PLAIN = (" the", "a", " 世界", "é", "", "\n", '"', "\\", "\u2028", '"finish_reason":"', '","text":"')
ODD = ("null", "7", "[]", '"\\ud83d\\ude00"', '"\\ud83d"', '"\\u00e9"', '"a\tb"', '"\\x"', '"a"b"', '"')
"""Values of a text's field, most of them none that JSON or the API allows."""
seeds = st.integers(0, 2**64)
"""Of bodies, and of the places where they are cut: to have Hypothesis draw every part takes ten times as long."""
IRREGULAR = (
    ": keep-alive\n\n",
    "data: [DONE]\n\n",
    "data:\n\n",
    "event: ping\n\n",
    "data: two\ndata: lines\n\n",
    "data: {}\n\n",
    'data: {"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":9}}\n\n',
    'data: {"choices":[{"index":0,"text":"a"},{"index":1,"text":"b"}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","content":"so"}}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"text\\":"}}]}}]}\n\n',
    'data: {"text":"decoy","choices":[{"index":0,"text":"a"}]}\n\n',
    'data: {"choices":[{"index":0,"text":"a","text":"b"}]}\n\n',
    'data: {"choices":[{"index":0,"text":"a"}],"error":{"message":"no"}}\n\n',
    'data:{"index":2,"token":{"text":"a"},"generated_text":"a a","details":{"generated_tokens":2}}\n\n',
    'data: {"text": ["a", "b"]}\n\n',
    'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"output_tokens":3}}}\n\n',
)


def chunks_of(pieces: Sequence[bytes], stream: EventStream) -> list[Chunk]:
    return [chunk for piece in pieces for chunk in stream.feed(piece)]


def cut(body: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(places), len(body)]
    return [body[low:high] for low, high in itertools.pairwise(edges)]


def places_in(random: Random, body: bytes) -> list[int]:
    return [random.randrange(len(body) + 1) for _ in range(random.randrange(13))]


def text_of(random: Random) -> str:
    match random.randrange(4):
        case 0:
            return '" a"'
        case 1:
            return json.dumps(random.choice(PLAIN), ensure_ascii=False)
        case 2:
            points = [random.choice((0x80, 0x800, 0xD800)) for _ in range(random.randrange(7))]
            return json.dumps("".join(chr(random.randrange(below)) for below in points))
        case _:
            return random.choice(ODD)


def part_of(random: Random, renders: Renders) -> str:
    """A run of one shape, as servers send them; or with a character too many somewhere; or something else."""
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(IRREGULAR)
    render, is_regular = random.choice(renders), random.random() < 0.5
    texts = ['" a"' if is_regular else text_of(random) for _ in range(random.randrange(9))]
    run = "".join(render(text, random.randrange(31)) for text in texts)
    if kind > 1:
        return run
    at = random.randrange(len(run) + 1)
    return run[:at] + random.choice('x\n"\\') + run[at:]


def body_of(random: Random, renders: Renders) -> bytes:
    parts = [part_of(random, renders) for _ in range(random.randrange(6))]
    return "".join(parts).encode("utf-8", "replace")


@pytest.mark.parametrize(
    ("reader", "renders"),
    [
        (read_completion, COMPLETIONS),
        (read_chat, CHATS),
        (read_response, RESPONSES),
        (read_llama_cpp, LLAMA_CPP),
        (read_triton, TRITON),
        (read_tgi, TGI),
        (read_mii, MII),
        (read_transformers_completion, COMPLETIONS),
        (read_transformers_chat, CHATS),
    ],
    ids=["completions", "chat", "responses", "llama.cpp", "triton", "tgi", "mii", "transformers", "transformers chat"],
)
@pytest.mark.parametrize("continuous", [False, True])
def test_any_interleaving_in_any_pieces_reads_the_same(reader: Reader, renders: Renders, continuous: bool) -> None:
    @given(seeds)
    def same(seed: int) -> None:
        random = Random(seed)
        before, body = body_of(random, renders), body_of(random, renders)
        places = places_in(random, body)
        shapes = TemplateCache(reader)
        EventStream(reader, shapes, continuous=continuous).feed(before)
        exact = chunks_of([body], EventStream(reader, None, continuous=continuous))
        assert chunks_of(cut(body, places), EventStream(reader, shapes, continuous=continuous)) == exact
        textless = EventStream(reader, shapes, continuous=continuous, keep_texts=False)
        assert [chunk._replace(text="") for chunk in chunks_of(cut(body, places), textless)] == [
            chunk._replace(text="") for chunk in exact
        ]

    same()


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("keep_texts", [False, True])
def test_invalid_utf_8_is_an_error_in_a_regular_event_too(together: bool, keep_texts: bool) -> None:
    stream = EventStream(read_completion, TemplateCache(read_completion), continuous=False, keep_texts=keep_texts)
    events = [vllm('" a"', 1).encode()] * 3 + [vllm('"BAD"', 4).encode().replace(b"BAD", b"\xff\xfe")]
    chunks = chunks_of([b"".join(events)] if together else events, stream)
    assert [chunk.tokens for chunk in chunks] == [1, 1, 1, 0]
    assert "malformed event in the stream" in (chunks[-1].error or "")
    assert stream.feed(events[0]) == []


def test_a_nul_in_the_first_event_of_a_stream_is_an_error_although_the_server_is_known() -> None:
    shapes = TemplateCache(read_completion)
    EventStream(read_completion, shapes, continuous=False).feed(vllm('" a"', 1).encode())
    broken = vllm('" NUL a"', 2).encode().replace(b"NUL", b"\0")
    (chunk,) = EventStream(read_completion, shapes, continuous=False).feed(broken)
    assert (chunk.tokens, "malformed event in the stream" in (chunk.error or "")) == (0, True)


class Counting:
    """A reader that counts its calls."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.requested = 0

    def __call__(self, event: bytes):  # type: ignore[no-untyped-def]
        self.requested += 1
        return self.reader(event)


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("together", [False, True], ids=["an event a read", "all in one read"])
@pytest.mark.parametrize(
    ("reader", "render"),
    [(read_completion, each) for each in COMPLETIONS]
    + [(read_chat, each) for each in CHATS]
    + [(read_response, each) for each in RESPONSES]
    + [(read_llama_cpp, each) for each in LLAMA_CPP]
    + [(read_triton, each) for each in TRITON]
    + [(read_tgi, tgi_own), (read_mii, mii_own)],
)
def test_a_second_stream_of_a_known_server_needs_no_parse(
    reader: Reader, render: Render, together: bool, continuous: bool
) -> None:
    counting = Counting(reader)
    shapes = TemplateCache(counting)
    events = [render(f'" w{number}é"', number).encode() for number in range(1, 21)]
    EventStream(counting, shapes, continuous=continuous).feed(events[0])
    counting.requested = 0
    others = [event.replace(b"803e0748", b"77") for event in events]
    found = chunks_of([b"".join(others)] if together else others, EventStream(counting, shapes, continuous=continuous))
    assert counting.requested == 0
    assert found == chunks_of(others, EventStream(reader, None, continuous=continuous))
    assert [chunk.tokens for chunk in found] == [1] * 20


def test_an_empty_text_counts_as_a_token_only_if_the_server_counts_it() -> None:
    for render, continuous, tokens in ((vllm, False, [1, 1]), (vllm_counted, True, [1, 1, 1])):
        stream = EventStream(read_completion, TemplateCache(read_completion), continuous=continuous)
        events = [render('" a"', 1), render('""', 2), render('" b"', 3)]
        assert [chunk.tokens for chunk in chunks_of([event.encode() for event in events], stream)] == tokens


def test_a_server_whose_events_are_all_different_is_read_exactly_and_costs_few_trials() -> None:
    counting = Counting(read_completion)
    stream = EventStream(counting, TemplateCache(counting), continuous=False)
    events = [f'data: {{"k{chr(97 + at % 26) * at}":1,"choices":[{{"text":"a"}}]}}\n\n'.encode() for at in range(300)]
    assert [chunk.tokens for chunk in chunks_of(events, stream)] == [1] * 300
    assert counting.requested < 400


CAPTURES = (
    ("vllm_completions_stream", read_completion),
    ("vllm_chat_stream", read_chat),
    ("vllm_chat_stream_continuous_usage", read_chat),
    ("vllm_chat_reasoning_stream", read_chat),
    ("vllm_chat_reasoning_stream_continuous_usage", read_chat),
    ("vllm_responses_stream", read_response),
    ("vllm_responses_reasoning_stream", read_response),
    ("llamacpp_completions_stream", read_completion),
    ("llamacpp_chat_stream", read_chat),
    ("transformers_completions_stream", read_completion),
    ("../../data/llama.cpp/completion_stream", read_llama_cpp),
    ("../../data/triton/generate_stream", read_triton),
    ("../../data/transformers/cb_completions_stream", read_transformers_completion),
    ("../../data/transformers/cb_chat_stream", read_transformers_chat),
)


@pytest.mark.parametrize(("name", "reader"), CAPTURES)
@pytest.mark.parametrize("continuous", [False, True])
def test_captured_streams_read_the_same_in_any_pieces(
    captured: Captured, name: str, reader: Reader, continuous: bool
) -> None:
    body = captured(name)
    exact = chunks_of([body], EventStream(reader, None, continuous=continuous))
    assert sum(chunk.tokens for chunk in exact) >= 2
    shapes = TemplateCache(reader)

    @given(seeds)
    def same(seed: int) -> None:
        pieces = cut(body, places_in(Random(seed), body))
        assert chunks_of(pieces, EventStream(reader, shapes, continuous=continuous)) == exact

    same()


def test_text_between_events_does_not_matter_if_tokens_follow_it_whichever_path_reads_them() -> None:
    event = b'data: {"choices": [{"index": 0, "delta": {"content": " a"}, "finish_reason": null}]}\n\n'
    stream = [event, event, b"some text of a proxy\n\n", event, event, b"data: [DONE]\n\n"]
    for templates in (TemplateCache(read_chat), None):
        parser = EventStream(read_chat, templates, continuous=False)
        chunks = [chunk for piece in stream for chunk in parser.feed(piece)]
        assert [chunk.error for chunk in chunks if chunk.error] == []
        assert sum(chunk.tokens for chunk in chunks) == 4
