"""Prompts that begin alike have equal blocks, and nothing else can be told from them."""

import pytest

from servetop.workload.shape.logged_request import LoggedRequest
from servetop.workload.shape.prefix_groups import HASH_BITS, PrefixGroups, characters_per_token

SALT = b"0123456789abcdef"


def groups(salt: bytes = SALT, block_tokens: int = 4, characters: float = 4) -> PrefixGroups:
    return PrefixGroups(salt, block_tokens=block_tokens, characters_per_token=characters)


def blocks_of(prompt: str, tokens: int, by: PrefixGroups) -> tuple[int, ...]:
    return by.blocks(LoggedRequest(at=0.0, prompt=prompt), tokens, source=1)


def test_a_common_beginning_is_common_blocks() -> None:
    by = groups()
    one, other = blocks_of("a" * 32 + "b" * 16, 12, by), blocks_of("a" * 32 + "c" * 16, 12, by)
    assert (len(one), one[:2], one[2] != other[2]) == (3, other[:2], True)
    assert all(0 <= each < 1 << HASH_BITS for each in one)


def test_equal_texts_after_another_beginning_are_other_blocks() -> None:
    by = groups()
    assert not set(blocks_of("x" + "a" * 47, 12, by)) & set(blocks_of("y" + "a" * 47, 12, by))


def test_another_salt_gives_other_blocks() -> None:
    assert not set(blocks_of("a" * 48, 12, groups())) & set(blocks_of("a" * 48, 12, groups(b"another salt....")))
    assert blocks_of("a" * 48, 12, groups()) == blocks_of("a" * 48, 12, groups())


def test_there_is_a_block_for_each_part_of_the_length() -> None:
    by = groups()
    short, again = blocks_of("a" * 16, 12, by), blocks_of("a" * 16, 12, by)
    assert (len(short), short[0], set(short[1:]) & set(again[1:])) == (3, again[0], set())
    assert len(blocks_of("a" * 400, 12, by)) == 3
    assert blocks_of("", 12, by) == ()


def test_token_ids_are_cut_at_the_boundaries_of_the_engine() -> None:
    by = groups()
    one = by.blocks(LoggedRequest(at=0.0, prompt_ids=tuple(range(9))), 9, source=1)
    other = by.blocks(LoggedRequest(at=0.0, prompt_ids=(*range(8), 99)), 9, source=2)
    assert (one[:2], one[2] != other[2], len(one)) == (other[:2], True, 3)


def test_blocks_of_a_trace_are_divided_and_are_those_of_its_source() -> None:
    by = groups()
    request = LoggedRequest(at=0.0, blocks=(7, 8), block_tokens=8)
    assert len(set(by.blocks(request, 16, source=1))) == 4
    assert not set(by.blocks(request, 16, source=1)) & set(by.blocks(request, 16, source=2))
    hashed = LoggedRequest(at=0.0, blocks=(7 << 40,), block_tokens=8)
    assert by.blocks(hashed, 8, source=1) == by.blocks(hashed, 8, source=2)


def test_sessions_are_known_by_name_and_numbers_by_source() -> None:
    by = groups()
    assert by.session("anna", source=1) == by.session("anna", source=2) != by.session("bert", source=1)
    assert by.session(5, source=1) != by.session(5, source=2)


def test_characters_of_a_token_are_measured() -> None:
    measured = [LoggedRequest(at=0.0, prompt="a" * 30, input_tokens=10), LoggedRequest(at=0.0, input_tokens=5)]
    assert characters_per_token(measured) == 3.0
    assert characters_per_token([LoggedRequest(at=0.0, prompt="word " * 8)]) == pytest.approx(4.0)
    assert characters_per_token([]) == 4.0
