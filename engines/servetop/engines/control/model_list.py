"""Reads a server's list of models, which advises but does not decide what can be measured."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from servetop.engines.control.control_client import HttpResult

MODELS = "/v1/models"


def model_names(data: Any) -> tuple[str, ...]:
    """Return the names in a list of models, which may be OpenAI's (`data`), a bare array, or have other keys."""
    rows = data.get("data", data.get("models")) if isinstance(data, dict) else data
    cards = rows if isinstance(rows, list) else []
    names = (card if isinstance(card, str) else _name_of(card) for card in cards)
    return tuple(name for name in names if name)


def is_served(name: str, served: Sequence[str]) -> bool:
    """Whether the list has the model, or a pattern that it matches, or nothing at all."""
    return not served or any(name == each or ("*" in each and fnmatchcase(name, each)) for each in served)


def default_model(served: Sequence[str]) -> str:
    """Return the first model of a list that is not empty; a pattern is none, unless there is nothing else."""
    return next((name for name in served if "*" not in name), served[0])


def unlisted_remark(result: HttpResult, served: Sequence[str], *, model: str, where: str) -> str:
    """Why a model is used that the server does not list, in one line; empty if it lists the model."""
    if result.error or not result.ok:
        why = result.error or f"HTTP {result.status}" + (f", {result.redirect}" if result.redirect else "")
        return f"{where} does not list models ({why}): {model} is used as given"
    return "" if model in served else f"{where} does not list {model}: it is used as given"


def _name_of(card: Any) -> str:
    found = (card.get(key) for key in ("id", "name", "model")) if isinstance(card, dict) else ()
    return next((name for name in found if isinstance(name, str)), "")
