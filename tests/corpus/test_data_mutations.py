"""Damaged data files of the corpus: refused in one line or read, and what is read is in the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.core.errors import UsageError
from tests.corpus.data_corpus import DataCase, DataReading, load_data, read_data
from tests.corpus.test_mutations import cut, with_a_line_twice, with_lines_exchanged, with_other_bytes, without_a_part

CASES = [case for case in load_data() if "long" not in case.facts]
PLAIN = [case for case in CASES if not case.body.startswith(b"\x1f\x8b")]
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
WORD = re.compile(r"\w+")


def with_a_part_of_another(random: Random, body: bytes) -> bytes:
    return cut(random, body) + cut(random, random.choice(PLAIN).body)


def with_a_part_elsewhere(random: Random, body: bytes) -> bytes:
    first, second, third = sorted(random.randrange(len(body) + 1) for _ in range(3))
    return body[:first] + body[second:third] + body[first:second] + body[third:]


DAMAGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    cut, without_a_part, with_a_line_twice, with_lines_exchanged, with_other_bytes, with_a_part_of_another,
    with_a_part_elsewhere,
)  # fmt: skip


def unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else LETTERS.get(match[2], match[2])


def readable_texts(body: bytes) -> list[str]:
    """The file in every encoding, as it is and with the escapes of JSON and of tables resolved."""
    found = []
    for encoding in ENCODINGS:
        text = body.decode(encoding, "replace")
        json_text = ESCAPE.sub(unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        found += [text, json_text, text.replace('""', '"')]
    return found


def lines_of(reading: DataReading) -> list[str]:
    """The lines of all texts that were read; parts of a message are joined by line ends."""
    texts = [row.text or "" for row in reading.rows]
    questions = [turn.question for row in reading.rows for turn in row.turns]
    return [line for text in (*texts, *questions) for line in re.split(r"[\r\n]", text) if line]


def outcome(case: DataCase, path: Path, body: bytes) -> DataReading:
    """What is read of the damaged file; nothing if it is refused in one line."""
    path.write_bytes(body)
    try:
        reading = read_data(case, path)
    except UsageError as error:
        reading = DataReading(broken=str(error))
    for message in (reading.broken, reading.first_bad, *reading.left_out):
        assert len(message.splitlines()) <= 1, message
    return reading


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_in_one_line_or_read(
    damage: Callable[[Random, bytes], bytes], tmp_path: Path
) -> None:
    @given(st.sampled_from(CASES), st.integers(0, 2**64))
    @settings(max_examples=300)
    def holds(case: DataCase, seed: int) -> None:
        reading = outcome(case, tmp_path / "data", damage(Random(seed), case.body))
        assert all(length > 0 for row in reading.rows for length in (row.input_tokens, row.output_tokens) if length)

    holds()


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_read_of_a_damaged_file_is_in_the_file(
    damage: Callable[[Random, bytes], bytes], tmp_path: Path
) -> None:
    @given(st.sampled_from(PLAIN), st.integers(0, 2**64))
    @settings(max_examples=300)
    def is_in_it(case: DataCase, seed: int) -> None:
        body = damage(Random(seed), case.body)
        lines = lines_of(outcome(case, tmp_path / "data", body))
        texts = readable_texts(body) if lines else []
        assert not [line for line in lines if not any(line in text for text in texts)], body

    is_in_it()
