"""Folder and file names of recordings; imports little, because every start needs it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import platformdirs

from servetop.core.config import RunConfig
from servetop.core.text.known_secrets import redactor_of

SUFFIX = ".servetop"
FOLDER_VARIABLE = "SERVETOP_RECORDINGS"
_MAX_PART_CHARS = 48


def recordings_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return `$SERVETOP_RECORDINGS`, else `servetop/recordings` in the user's data folder (XDG); it may not exist."""
    chosen = (os.environ if environment is None else environment).get(FOLDER_VARIABLE)
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("servetop") / "recordings"


def new_recording_path(config: RunConfig, wall_time: float, *, folder: Path | None = None) -> Path:
    """Return an unused path `{YYYYmmdd-HHMMSS}-{label, engine or server}-{model}.servetop`, in local time."""
    stamp = datetime.fromtimestamp(wall_time).strftime("%Y%m%d-%H%M%S")
    redactor = redactor_of(config)
    names = [config.label or config.engine.known_as, Path(config.engine.model).name]
    stem = "-".join(part for part in [stamp, *(_plain(redactor.text(name)) for name in names)] if part)
    folder = recordings_folder() if folder is None else folder
    path, number = folder / f"{stem}{SUFFIX}", 2
    while os.path.exists(path):  # False without access to the folder
        path, number = folder / f"{stem}-{number}{SUFFIX}", number + 1
    return path


def _plain(text: str) -> str:
    """Replace all characters except letters, digits, `.`, `_` and `-`, so that the name needs no quoting."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:_MAX_PART_CHARS].strip("-.")
