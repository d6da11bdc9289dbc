"""Events whose token counts increase by one."""

from __future__ import annotations

import pytest

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.counted_events import CountedTail

PROMPT = 7


def tail(output: int, total: int | None = None) -> bytes:
    """The end of an event with 100 % of its counts."""
    after = b"" if total is None else b',"total_tokens":%d' % total
    return b'"},"note":"100%%","usage":{"completion_tokens":%d%s}}' % (output, after)


def learned(output: int, total: int | None = None) -> CountedTail:
    data = tail(output, total)
    start = data.index(b"completion_tokens") + len(b'completion_tokens":')
    last = Chunk(tokens=1, prompt_tokens=PROMPT, output_tokens=output)
    return CountedTail(data, (start, start + len(str(output))), last=last)


@pytest.mark.parametrize("total", [None, PROMPT])
def test_tails_that_count_up_by_one_give_the_texts_before_them(total: int | None) -> None:
    tails = learned(3, None if total is None else 3 + total)
    ends = [tail(count, None if total is None else count + total) for count in (9, 10, 11)]
    middles = [text + end.removesuffix(tails.suffix) for text, end in zip((b"a", b"", b"c"), ends, strict=True)]
    assert tails.texts(middles, seen=8) == [b"a", b"", b"c"]


@pytest.mark.parametrize("counts", [(9, 11), (10, 11), (9, 9)])
def test_a_count_that_skips_or_repeats_is_not_accepted(counts: tuple[int, int]) -> None:
    tails = learned(3)
    assert tails.texts([b"x" + tail(count).removesuffix(tails.suffix) for count in counts], seen=8) is None


def test_a_total_that_is_not_the_sum_belongs_to_the_suffix() -> None:
    assert learned(3, 99).suffix == b',"total_tokens":99}}'


def test_the_suffix_follows_the_last_number() -> None:
    assert learned(3).suffix == learned(3, PROMPT + 3).suffix == b"}}"


def test_the_last_chunk_carries_the_count_and_the_kind() -> None:
    chunk = learned(3).last(12, reasoning=True)
    assert (chunk.tokens, chunk.output_tokens, chunk.prompt_tokens, chunk.reasoning) == (1, 12, PROMPT, True)
