"""The files of profiles: one TOML file each, shipped or in a folder of the user."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import TypeVar

from servetop.core.config import from_data
from servetop.core.errors import UsageError
from servetop.core.system.package_data import package_path
from servetop.simulator.model.profiles import EngineProfile, GpuProfile, ModelProfile

PROFILE_PATH_VARIABLE = "SERVETOP_PROFILES"
"""Environment variable with colon-separated folders that contain gpus/, models/ and engines/."""

_Profile = TypeVar("_Profile", GpuProfile, ModelProfile, EngineProfile)


def load_gpu(name: str) -> GpuProfile:
    """Return the GPU profile of this name or TOML file."""
    return _load(GpuProfile, "gpus", name=name)


def load_model(name: str) -> ModelProfile:
    """Return the model profile of this name, hub name, TOML file or weights folder (by the folder's name)."""
    known = profile_names("models")
    if name.endswith(".toml") or name in known:
        return _load(ModelProfile, "models", name=name)
    folder = Path(name).name
    return _load(ModelProfile, "models", name=folder if folder in known else _name_of_hub_name(name))


def load_engine(name: str) -> EngineProfile:
    """Return the engine profile of this name or TOML file."""
    return _load(EngineProfile, "engines", name=name)


def profile_names(kind: str) -> list[str]:
    """Return the names of all profiles of a kind (`gpus`, `models`, `engines`)."""
    return sorted({path.stem for folder in _folders(kind) for path in folder.glob("*.toml")})


def _load(profile: type[_Profile], kind: str, *, name: str) -> _Profile:
    path = _find(kind, name)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: not a readable TOML file ({error})") from None
    try:
        return from_data(profile, {"name": path.stem} | data, where=str(path))
    except TypeError as error:
        missing = str(error).partition("argument")[2].lstrip("s: ")
        raise UsageError(f"{path}: missing {missing}") from None


def _find(kind: str, name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    for folder in _folders(kind):
        path = folder / f"{name}.toml"
        if path.is_file():
            return path
    known = profile_names(kind)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    raise UsageError(f"no {kind[:-1]} profile {name!r}: {hint}")


def _folders(kind: str) -> list[Path]:
    user_folders = [Path(part) for part in os.environ.get(PROFILE_PATH_VARIABLE, "").split(":") if part]
    return [folder / kind for folder in (*user_folders, package_path("servetop.simulator", "profiles"))]


def _name_of_hub_name(hub_name: str) -> str:
    """Return the name of the model profile with this hub name, or the hub name if there is none."""
    files = (path for folder in _folders("models") for path in sorted(folder.glob("*.toml")))
    return next((path.stem for path in files if _hub_name_in(path).lower() == hub_name.lower()), hub_name)


def _hub_name_in(path: Path) -> str:
    """Return a model file's hub name; empty for an unreadable file, which `_load` reports."""
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8")).get("hub_name", ""))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ""
