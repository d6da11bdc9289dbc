"""Responses captured from real servers (tests/engines/data), and the structure of a JSON value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "engines" / "data"


def body(name: str) -> str:
    """A captured response without its HTTP head, if any."""
    text = (DATA / name).read_text(encoding="utf-8")
    return text.partition("\n\n")[2] if text.startswith("HTTP/") else text


def captured_events(name: str) -> list[dict[str, Any]]:
    """The JSON of a captured stream's events."""
    blocks = [block.strip() for block in body(name).split("\n\n")]
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block.startswith("data: {")]


def keys_of(value: Any) -> Any:
    """The structure of a JSON value: its keys and lists, without leaf values."""
    if isinstance(value, dict):
        return {key: keys_of(each) for key, each in value.items()}
    if isinstance(value, list):
        return [keys_of(each) for each in value[:1]]
    return None
