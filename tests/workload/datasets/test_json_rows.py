"""JSON files are decoded value by value."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.workload.datasets.json_rows import array_items

json_items = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(json_items, max_size=4), st.sampled_from([None, 1, "\t"]))
def test_an_array_is_decoded_item_by_item_like_json(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], indent: int | str | None
) -> None:
    path = tmp_path_factory.mktemp("any") / "array.json"
    path.write_text(json.dumps(items, indent=indent))
    assert [item for _, item in array_items(path)] == items


def test_an_array_larger_than_one_read_keeps_its_line_numbers(tmp_path: Path) -> None:
    items = [{"value": "x" * 300_000, "number": number} for number in range(9)]
    path = tmp_path / "large.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, items)) + "\n]")
    assert [(line, item["number"]) for line, item in array_items(path) if isinstance(item, dict)] == [
        (number + 2, number) for number in range(9)
    ]
