"""What a cache of blocks has seen of a stream of prompts."""

from __future__ import annotations

from servetop.core.interfaces.dialect import Prompt
from servetop.workload.datasets.repeated_prompts import Seen, found_shares


def ids(*tokens: int) -> Prompt:
    return Prompt(text="", token_ids=tokens, input_tokens=len(tokens), output_tokens=1)


def test_whole_blocks_of_an_earlier_beginning_are_found_and_the_last_token_never() -> None:
    prompts = [ids(1, 2, 3, 4, 5), ids(1, 2, 3, 9, 9), ids(1, 2, 3, 4), ids(7, 7, 3, 4, 5)]
    seen: Seen = set()
    assert list(found_shares(prompts, block_size=2, seen=seen)) == [(0.0, 5), (0.4, 5), (0.5, 4), (0.0, 5)]
    assert list(found_shares(prompts[:1], block_size=2, seen=seen)) == [(0.8, 5)]


def test_texts_are_compared_in_pieces_of_four_characters_a_token() -> None:
    texts = [Prompt(text=text, input_tokens=1, output_tokens=1) for text in ("abcdefghijk", "abcdefghXjk", "abc", "")]
    assert list(found_shares(texts, block_size=1, seen=set())) == [(0.0, 11), (8 / 11, 11), (0.0, 3), (0.0, 0)]
