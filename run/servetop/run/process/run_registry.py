"""The registry of this user's active runs: a small file for each, which its run process keeps up to date."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import orjson
import platformdirs

from servetop.core.errors import ServetopError, UsageError, system_reason
from servetop.core.text.encodable import encodable_data
from servetop.run.process.registered_run import RegisteredRun

_LETTERS, _DIGITS = "bcdfghjkmnpqrstvwxz", "23456789"
"""Without vowels, so that no id is a word, and without characters that look alike."""
_ID_LENGTH = 4
_LARGEST = 1 << 16
"""Bytes that are read of a file; a run needs a few hundred."""
_SUFFIX = ".json"


class RegistryError(ServetopError):
    """The folder of the registry cannot be read or written."""


def registry_folder() -> Path:
    """`servetop/runs` in the user's state folder (XDG); in the temporary folder for a user without a home."""
    with contextlib.suppress(RuntimeError):
        folder = platformdirs.user_state_path("servetop") / "runs"
        if folder.is_absolute():
            return folder
    return Path(tempfile.gettempdir()) / f"servetop-runs-{os.getuid()}"


class RunRegistry:
    """A folder of files named after run ids, readable only by the user."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use this folder; by default the user's."""
        self._folder = registry_folder() if folder is None else folder

    def runs(self) -> list[RegisteredRun]:
        """Return the active runs, newest first; removes the files of runs that have ended."""
        try:
            self._check_folder()
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RegistryError(
                f"cannot list the runs in {self._folder} ({system_reason(error)}): check its permissions"
            ) from error
        found = [self._read(self._folder / name) for name in names if name.endswith(_SUFFIX)]
        return sorted((run for run in found if run is not None), key=lambda run: (run.began, run.id), reverse=True)

    def find(self, name: str) -> RegisteredRun:
        """The run with this id, beginning of an id, or recording, or the `latest` one; UsageError if there is none."""
        runs = self.runs()
        if not runs:
            raise UsageError(f"no run {name}: you have no active run on this machine (servetop ls lists recordings)")
        if name == "latest":
            return runs[0]
        found = [run for run in runs if run.id.startswith(name.lower())] if name else []
        found = found or [run for run in runs if name in (run.recording.stem, str(run.recording))]
        if len(found) == 1:
            return found[0]
        active = ", ".join(run.id for run in found or runs)
        what = f"{name!r} matches several runs" if found else f"no active run {name!r}"
        raise UsageError(f"{what}: choose one of {active} (see servetop ps)")

    def of_process(self, pid: int) -> RegisteredRun | None:
        """Return the run of a process."""
        return next((run for run in self.runs() if run.pid == pid), None)

    def new_id(self) -> str:
        """Return an unused id."""
        while True:
            letters = [secrets.choice(_LETTERS), *(secrets.choice(_LETTERS + _DIGITS) for _ in range(_ID_LENGTH - 1))]
            if not os.path.exists(self._folder / ("".join(letters) + _SUFFIX)):  # False without access to the folder
                return "".join(letters)

    def write(self, run: RegisteredRun) -> None:
        """Add or update a run; RegistryError if the file cannot be written."""
        path = self._folder / f"{run.id}{_SUFFIX}"
        draft = path.with_suffix(".new")
        try:
            self._make_folder()
            draft.unlink(missing_ok=True)
            fd = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(orjson.dumps(encodable_data({**asdict(run), "recording": str(run.recording)})))
            draft.replace(path)
        except OSError as error:
            raise RegistryError(f"cannot write to {self._folder} ({system_reason(error)})") from error

    def remove(self, run_id: str) -> None:
        """Remove a run, if it is registered."""
        for suffix in (_SUFFIX, ".new"):
            with contextlib.suppress(OSError):
                (self._folder / f"{run_id}{suffix}").unlink()

    def _make_folder(self) -> None:
        """Create the folder, accessible only to this user."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if stat.S_IMODE(self._check_folder().st_mode) & 0o077:
            self._folder.chmod(0o700)

    def _check_folder(self) -> os.stat_result:
        """PermissionError for a folder of another user, whose files may name any process."""
        found = self._folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(0, "it is not a folder of this user")
        return found

    def _read(self, path: Path) -> RegisteredRun | None:
        """Return the run of a file; None if it has ended or runs on another machine, or if the file is damaged."""
        try:
            with path.open("rb") as file:
                data = orjson.loads(file.read(_LARGEST))
            run = RegisteredRun(**{**data, "id": path.stem, "recording": Path(data["recording"])})
            process = run.process
            if not process.is_here():
                return None
            alive = process.is_alive()
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            return None
        if not alive:
            self.remove(path.stem)
            return None
        return run


class Registration:
    """The entry of one run in the registry; errors of the registry never stop the run."""

    def __init__(self, registry: RunRegistry, run: RegisteredRun, *, warn: Callable[[str], None]) -> None:
        self._registry = registry
        self._run = run
        self._warn = warn
        self._listed = False
        self._failed = False

    def update(self, *, state: str, detached: bool, trouble: str = "", engine: str = "") -> None:
        """Write the entry if it has changed; the first failure is reported, and ends the updates."""
        run = replace(self._run, state=state, detached=detached, trouble=trouble, engine=engine or self._run.engine)
        if self._failed or (self._listed and run == self._run):
            return
        self._run = run
        try:
            self._registry.write(run)
            self._listed = True
        except RegistryError as error:
            self._failed = True
            self._warn(f"servetop ps does not list this run: {error}")

    def end(self) -> None:
        """Remove the entry."""
        self._registry.remove(self._run.id)
