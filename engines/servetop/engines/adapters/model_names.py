"""Model names: what a user types, and what a model hub calls it."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from servetop.core.errors import UsageError


def aliases() -> Mapping[str, str]:
    """The table of data/models.toml: short names and hub names."""
    text = files("servetop.engines").joinpath("data/models.toml").read_text(encoding="utf-8")
    table: dict[str, str] = tomllib.loads(text)["aliases"]
    return table


def resolve_model(model: str) -> str:
    """A local path and a hub name (`org/name`) as they are, an alias by the table.

    UsageError for an unknown alias, with the nearest ones, and for a path that is not there.
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
    hint = f"did you mean {', '.join(near)}?" if near else "aliases are such as llama-2-7b;"
    raise UsageError(f"unknown model {model!r}: {hint} a hub name (org/name) or a local path is taken as it is")
