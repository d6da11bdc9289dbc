"""The notes that tell what was done to the prefix cache before a load or a cell began."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from servetop.core.events import Note

SOURCE = "cache"
"""Source of these notes."""
_RESET, _SALTED, _IDEAL = "prefix cache reset", "prompts salted", "ideal hit rate of the prefix cache"
_RATE = re.compile(r"(run|stage \d+) ([\d.]+)")


def reset_note(path: str) -> str:
    """Return the text for a cache that was emptied."""
    return f"{_RESET} (POST {path})"


def salt_note(salt: int, reason: str) -> str:
    """Return the text for prompts that were altered because the cache could not be emptied."""
    return f"{_SALTED} ({salt:x}) so that none is cached: {reason}"


def cache_methods(notes: Sequence[Note]) -> tuple[str, ...]:
    """Return how the cache was kept from having prompts of before: `reset`, `salt`, both in this order, or nothing."""
    texts = [note.text for note in notes if note.source == SOURCE]
    methods = {"reset": _RESET, "salt": _SALTED}
    return tuple(name for name, begin in methods.items() if any(text.startswith(begin) for text in texts))


def ideal_note(stages: Mapping[int, float], run: float) -> str:
    """Return the text for the hit rates of an infinite cache, by number of a stage and of the whole run."""
    rates = ", ".join(f"stage {stage} {rate:.4f}" for stage, rate in stages.items())
    return f"{_IDEAL}: run {run:.4f}, {rates}"


def noted_rates(notes: Sequence[Note]) -> Mapping[int | None, float]:
    """Return the rates of the last such note, by number of the stage, None for the run; empty without one."""
    texts = [note.text for note in notes if note.source == SOURCE and note.text.startswith(_IDEAL)]
    found = _RATE.findall(texts[-1]) if texts else []
    return {None if name == "run" else int(name.removeprefix("stage ")): float(rate) for name, rate in found}
