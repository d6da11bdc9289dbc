"""The text of a completion, with and without reasoning."""

from servetop.core.interfaces.dialect import Chunk
from servetop.loadgen.request.completion_text import CompletionText


def text_of(*chunks: Chunk) -> CompletionText:
    text = CompletionText()
    for chunk in chunks:
        text.add(chunk)
    return text


def test_without_reasoning_the_answer_is_the_full_text() -> None:
    text = text_of(Chunk(text="a"), Chunk(text="b"))
    assert (text.full, text.answer) == ("ab", "ab")


def test_reasoning_is_left_out_of_the_answer() -> None:
    text = text_of(Chunk(text="hm", reasoning=True), Chunk(text="yes"), Chunk(text="!", reasoning=True))
    assert (text.full, text.answer) == ("hmyes!", "yes")


def test_a_chunk_may_contain_answer_and_reasoning() -> None:
    text = text_of(Chunk(text="so "), Chunk(text="yeshm", reasoning_chars=2))
    assert (text.full, text.answer) == ("so yeshm", "so yes")
