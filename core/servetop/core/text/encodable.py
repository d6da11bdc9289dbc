"""Text with lone surrogates cannot be encoded as UTF-8; it comes from `\\ud83d` in JSON and from undecodable bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def encodable(text: str) -> str:
    """Replace each lone surrogate by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def encodable_data(data: Any) -> Any:
    """Replace each lone surrogate in plain data (dictionaries, lists, texts) by `?`."""
    if isinstance(data, str):
        return encodable(data)
    if isinstance(data, Mapping):
        return {encodable_data(key): encodable_data(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [encodable_data(value) for value in data]
    return data


def not_encodable(data: Any) -> str | None:
    """Return the first text of plain data that cannot be encoded as UTF-8; None if all can."""
    if isinstance(data, Mapping):
        return not_encodable([*data, *data.values()])
    if isinstance(data, list | tuple):
        return next((text for text in map(not_encodable, data) if text is not None), None)
    return data if isinstance(data, str) and encodable(data) != data else None
