"""Streams without an end marker: a body that ends cleanly after at least one token is complete."""

from __future__ import annotations

import pytest

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.json_event import read_completion
from servetop.engines.dialects.stream_parser import EventStream

EVENT = b'data: {"choices":[{"index":0,"text":" a"}]}\n\n'
ENDED = [Chunk(final=True)]


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("keep_texts", [False, True])
def test_the_end_of_the_body_is_the_end_of_the_answer_once_a_token_came(continuous: bool, keep_texts: bool) -> None:
    shapes = TemplateCache(read_completion)
    for body, expected in (
        (EVENT, ENDED),
        (EVENT * 3, ENDED),
        (EVENT + EVENT[:9], []),
        (b"", []),
        (b"data: {}\n\n", []),
    ):
        stream = EventStream(
            read_completion, shapes, continuous=continuous, keep_texts=keep_texts, ends_with_body=True
        )  # of a known server from the second one on: its events are matched by their template
        stream.feed(body)
        assert list(stream.finish()) == expected


def test_with_an_end_marker_the_end_of_the_body_ends_nothing() -> None:
    stream = EventStream(read_completion, TemplateCache(read_completion), continuous=False)
    stream.feed(EVENT)
    assert list(stream.finish()) == []
