"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from servetop.core.text.counted import counted, was_were


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 rows were"), (1, "1 row was"), (2, "2 rows were"), (1204, "1,204 rows were")],
)
def test_one_thing_is_in_the_singular(number: int, text: str) -> None:
    assert f"{counted(number, 'row')} {was_were(number)}" == text
