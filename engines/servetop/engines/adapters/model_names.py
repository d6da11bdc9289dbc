"""Resolves the model names that users type to hub names."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from servetop.core.errors import UsageError


def aliases() -> Mapping[str, str]:
    """Return the hub name by alias, from data/models.toml."""
    text = files("servetop.engines").joinpath("data/models.toml").read_text(encoding="utf-8")
    table: dict[str, str] = tomllib.loads(text)["aliases"]
    return table


def resolve_model(model: str) -> str:
    """Return the hub name of an alias; local paths and hub names (`org/name`) are returned unchanged.

    UsageError for an unknown alias, with similar ones, and for a path that does not exist.
    """
    if not model:
        raise UsageError("no model is named: give --model with an alias, a hub name or a local path")
    if model.startswith(("/", "./", "../", "~")):
        path = Path(model).expanduser()
        if path.exists():
            return str(path)
        raise UsageError(f"there is no model at {path}: check the path given to --model")
    if "/" in model or Path(model).is_dir():
        return model
    table = aliases()
    if (known := table.get(model.lower())) is not None:
        return known
    near = difflib.get_close_matches(model.lower(), table, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "an example of an alias is llama-2-7b;"
    raise UsageError(f"unknown model {model!r}: {hint} a hub name (org/name) or a local path is used as it is")
