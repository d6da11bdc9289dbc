"""The notes that tell what was done to the prefix cache before a load or a cell began."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.events import Note

SOURCE = "cache"
"""Source of these notes."""
_RESET, _SALTED = "prefix cache reset", "prompts salted"


def reset_note(path: str) -> str:
    """The text for a cache that was emptied."""
    return f"{_RESET} (POST {path})"


def salt_note(salt: int, reason: str) -> str:
    """The text for prompts that were altered because the cache could not be emptied."""
    return f"{_SALTED} ({salt:x}) so that none is cached: {reason}"


def cache_methods(notes: Sequence[Note]) -> tuple[str, ...]:
    """How the cache was kept from having prompts of before: `reset`, `salt`, both in this order, or nothing."""
    texts = [note.text for note in notes if note.source == SOURCE]
    methods = {"reset": _RESET, "salt": _SALTED}
    return tuple(name for name, begin in methods.items() if any(text.startswith(begin) for text in texts))
