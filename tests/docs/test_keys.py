"""The page of the steering keys lists every key that steers a run."""

from __future__ import annotations

from servetop.tui.keys import STEERING
from tests.house.source_tree import TOP

PAGE = TOP / "docs" / "how-to" / "steer.md"


def test_every_steering_key_is_on_its_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [key.caption for key in STEERING if f"`{key.caption}`" not in text] == []
