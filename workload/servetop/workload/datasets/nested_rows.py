"""Rows in a list within the one object of a JSON file, such as `{"data": {"rows": [...]}}` or `{"train": [...]}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from servetop.core.errors import UsageError
from servetop.core.text.sanitize import sanitize_line
from servetop.workload.datasets.conversation_rows import COLUMNS

_MAX_KEYS = 2
"""Keys that lead to a list of rows."""
_SHOWN = 100
"""Most characters of keys in a message."""
_SPEAKERS = frozenset(("role", "from"))
_PROMPTS = frozenset(("prompt", "text", "question", "instruction", "input", "inputs", "query", "content", "problem"))
"""Names of columns: an object with a text under one of them is a row, whatever lists it has."""


def rows_within(path: Path, content: object) -> list[Any] | None:
    """Return the list of rows in the only value of a file; None if that value is a row itself, or has no such list.

    UsageError, which names the keys, if there are several lists.
    """
    found = dict(_lists(content, "", _MAX_KEYS))
    if len(found) > 1:
        names = sanitize_line(", ".join(found))
        shown = names if len(names) <= _SHOWN else f"{names[: _SHOWN - 1]}…"
        example = sanitize_line(next(iter(found)))
        raise UsageError(f"{path} has several lists ({shown}): write one to a file, as in jq '.{example}' {path.name}")
    return next(iter(found.values()), None)


def _lists(content: object, prefix: str, keys_left: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of objects or texts that at most `keys_left` keys lead to, by these keys joined with dots."""
    if not isinstance(content, Mapping) or not keys_left or _is_row(content):
        return
    for key, value in content.items():
        if isinstance(value, list) and value and all(map(_may_be_row, value)):
            yield f"{prefix}{key}", value
        else:
            yield from _lists(value, f"{prefix}{key}.", keys_left - 1)


def _may_be_row(item: object) -> bool:
    """Whether an item of a list may be a row, which a message of a conversation is not."""
    return isinstance(item, str) or (isinstance(item, dict) and not _SPEAKERS & item.keys())


def _is_row(content: Mapping[Any, Any]) -> bool:
    return any(name in content for name in COLUMNS) or any(isinstance(content.get(each), str) for each in _PROMPTS)
