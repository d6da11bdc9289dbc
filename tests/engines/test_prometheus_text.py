"""The scanner reads the same values from a page as prometheus_client's parser."""

from __future__ import annotations

import math
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from servetop.engines.metrics.prometheus_text import scan

names = st.sampled_from(["vllm:a", "vllm:a_b", "vllm:a_total", "vllm:a_bucket", "other", "a"])
label_names = st.sampled_from(["engine", "model_name", "le", "_x"])
label_values = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e"), max_size=12
)
values = st.floats(allow_nan=True, allow_infinity=True)
rows = st.tuples(names, st.dictionaries(label_names, label_values, max_size=3), values)


def line(name: str, labels: dict[str, str], value: float) -> str:
    escaped = {key: text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') for key, text in labels.items()}
    inside = ",".join(f'{key}="{text}"' for key, text in escaped.items())
    number = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(value))
    return f"{name}{{{inside}}} {number}" if labels else f"{name} {number}"


@given(st.lists(rows, max_size=8))
def test_values_and_labels_equal_those_of_the_reference_parser(
    page_rows: list[tuple[str, dict[str, str], float]],
) -> None:
    page = "# HELP vllm:a text\n# TYPE vllm:a gauge\n" + "".join(line(*row) + "\n" for row in page_rows)
    wanted = {"vllm:a", "vllm:a_total", "vllm:a_bucket"}
    expected = [
        (sample.name, dict(sample.labels), repr(sample.value))
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name in wanted
    ]
    found = [(name, dict(row.labels), repr(row.value)) for name, rows in scan(page, wanted).items() for row in rows]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@given(st.text())
def test_no_text_whatever_makes_it_fail(page: str) -> None:
    scan(page, {"vllm:a", page.split("{")[0].split(" ")[0]})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("vllm:a 3", 3.0),
        ('vllm:a{model="}\\" 9 {"} 4e2 1795252818000', 400.0),
        ('vllm:a{model="a"} 5 }', 5.0),
        ('vllm:a{model="}"} 6', 6.0),
        ("vllm:a\t5", 5.0),
        (" \tvllm:a {} 5", 5.0),
        ("vllm:a 1_000", None),
        ("vllm:a{engine=\"0\"", None),
        ("vllm:a", None),
        ("vllm:a nonsense", None),
        ("<title>vllm:a 3</title>", None),
    ],
)  # fmt: skip
def test_a_line_gives_its_value_or_nothing(text: str, value: float | None) -> None:
    rows = scan(text, {"vllm:a"}).get("vllm:a", [])
    assert [row.value for row in rows] == ([] if value is None else [value])


class CountingText(str):
    """Text that adds up how many characters are looked at or copied, in `seen[0]`; its pieces count too."""

    seen: list[int]

    @classmethod
    def of(cls, text: str, seen: list[int]) -> CountingText:
        made = cls(text)
        made.seen = seen
        return made

    def _piece(self, text: str) -> CountingText:
        self.seen[0] += len(text) + 1
        return CountingText.of(text, self.seen)

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return [self._piece(piece) for piece in super().split(sep, maxsplit)]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        before, found, after = super().partition(sep)
        return self._piece(before), found, self._piece(after)

    def strip(self, chars: str | None = None, /) -> str:
        return self._piece(super().strip(chars))

    def lstrip(self, chars: str | None = None, /) -> str:
        self.seen[0] += len(self)
        return self._piece(super().lstrip(chars))

    def rstrip(self, chars: str | None = None, /) -> str:
        self.seen[0] += len(self)
        return self._piece(super().rstrip(chars))

    def find(self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None, /) -> int:
        at = super().find(sub, start, end)
        last = len(self) if end is None else min(int(end), len(self))
        self.seen[0] += 1 + max(0, (last if at < 0 else at + 1) - int(start or 0))
        return at

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        return self._piece(super().__getitem__(key))


STEPS_A_CHARACTER = 32
pieces = st.sampled_from(["vllm:a", *'{}"\\ \t=,\n1#', '\\"', "le", 'x="', '"}'])
hostile_pages = st.one_of(
    st.lists(pieces, max_size=60).map("".join),
    st.tuples(pieces, st.integers(1, 3000)).map(lambda pair: "vllm:a{" + pair[0] * pair[1]),
    st.tuples(pieces, st.integers(1, 3000)).map(lambda pair: "vllm:a" + pair[0] * pair[1]),
    st.tuples(pieces, pieces, st.integers(1, 1500)).map(lambda t: 'vllm:a{x="' + (t[0] + t[1]) * t[2] + '"} 1'),
)


@given(hostile_pages)
def test_each_character_of_a_page_is_read_a_bounded_number_of_times(page: str) -> None:
    seen = [0]
    rows = scan(CountingText.of(page, seen), {"vllm:a"}).get("vllm:a", [])
    for row in rows:
        assert row.labels is not None
    assert seen[0] <= STEPS_A_CHARACTER * (len(page) + 10)


def test_a_line_of_many_blanks_costs_as_much_as_its_length() -> None:
    counts = []
    for blanks in (100_000, 200_000):
        seen = [0]
        assert scan(CountingText.of("vllm:a" + " " * blanks + "{", seen), {"vllm:a"}) == {}
        counts.append(seen[0])
    assert counts[1] < 2.01 * counts[0]


def test_a_line_above_4096_characters_is_passed_over_and_those_beside_it_are_read() -> None:
    page = "vllm:a 1\n" + 'vllm:a{x="' + "y" * 5000 + '"} 2\nvllm:a 3\n'
    assert [row.value for row in scan(page, {"vllm:a"})["vllm:a"]] == [1.0, 3.0]
