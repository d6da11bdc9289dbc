"""Reads a server's list of models, in whatever form it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MODELS = "/v1/models"


def model_names(data: Any) -> tuple[str, ...]:
    """Return the names in a list of models, which may be OpenAI's (`data`), a bare array, or have other keys."""
    rows = data.get("data") or data.get("models") if isinstance(data, dict) else data
    cards = rows if isinstance(rows, list) else []
    names = (card if isinstance(card, str) else _name_of(card) for card in cards)
    return tuple(name for name in names if name)


def default_model(served: Sequence[str]) -> str:
    """Return the first model of a list that is not empty; a pattern is none, unless there is nothing else."""
    return next((name for name in served if "*" not in name), served[0])


def _name_of(card: Any) -> str:
    found = (card.get(key) for key in ("id", "name", "model")) if isinstance(card, dict) else ()
    return next((name for name in found if isinstance(name, str)), "")
