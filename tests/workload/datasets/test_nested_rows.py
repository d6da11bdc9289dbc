"""Rows within the one object of a JSON file are found by content, or the file is refused by naming its lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from servetop.core.errors import UsageError
from servetop.workload.datasets.nested_rows import rows_within

ROWS = [{"prompt": "a"}, {"prompt": "b"}]
FILE = Path("data.json")


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ({"data": ROWS}, ROWS),
        ({"version": "1.1", "data": {"rows": ROWS, "count": 2}}, ROWS),
        ({"prompts": ["a", "b"]}, ["a", "b"]),
        ({"a": {"b": {"rows": ROWS}}}, None),
        ({"prompt": "a", "references": ROWS}, None),
        ({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function"}]}, None),
        ({"chat": [{"role": "user", "content": "a"}]}, None),
        ({"data": []}, None),
        ({"data": [1, 2]}, None),
        (ROWS, None),
        (None, None),
    ],
)
def test_the_only_list_of_rows_is_found(content: Any, rows: Any) -> None:
    assert rows_within(FILE, content) == rows


def test_several_lists_are_named() -> None:
    with pytest.raises(UsageError, match=r"data.json has several lists \(train, more.test\): .*jq '.train' data.json"):
        rows_within(FILE, {"train": ROWS, "more": {"test": ROWS}})
