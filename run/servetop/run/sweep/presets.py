"""Presets: the sweep files that are part of servetop, such as those of the published studies."""

from __future__ import annotations

import difflib
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from servetop.core.errors import UsageError
from servetop.run.sweep.simulator_table import with_arrivals_of_simulator


def preset_folder() -> str:
    """Return where the presets are, to be copied."""
    return str(resources.files("servetop.run") / "presets")


def preset_names() -> list[str]:
    """Return the names of the presets, sorted."""
    folder = resources.files("servetop.run") / "presets"
    return sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml"))


def preset_data(name: str) -> dict[str, Any]:
    """The parsed TOML of a preset; a study's name selects its vLLM part (`whitepaper-1` is `whitepaper-1-vllm`)."""
    names = preset_names()
    full = f"{name}-vllm" if name not in names and f"{name}-vllm" in names else name
    if full not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"presets are {', '.join(names)}"
        raise UsageError(f"no sweep file or preset named {name}: {hint}")
    text = (resources.files("servetop.run") / "presets" / f"{full}.toml").read_text(encoding="utf-8")
    return {"label": full} | tomllib.loads(text)


def example_sweep() -> str:
    """Return a commented sweep file that runs unchanged."""
    return (resources.files("servetop.run") / "sweep_example.toml").read_text(encoding="utf-8")


def sweep_data(name: str) -> dict[str, Any]:
    """Return the parsed TOML of a sweep file or a preset; UsageError when there is none, or it is not valid TOML."""
    if not name:
        raise UsageError("sweep: give a file or a preset's name; servetop sweep --example prints an example")
    path = Path(name)
    if not path.is_file():
        return preset_data(name)
    try:
        data = {"label": path.stem} | tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is not valid TOML: {error}") from None
    return with_arrivals_of_simulator(data)
