"""Makes temporary folders, and removes those that killed processes left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LOCK = "lock"
"""File in each folder, locked by the process that made it; the kernel unlocks it however that process ends."""


def make_temporary_folder(prefix: str) -> Path:
    """Make a folder in the directory of temporary files, after removing abandoned ones with the same prefix.

    The caller removes it at the end of the process. OSError if it cannot be made.
    """
    for folder in _folders(prefix):
        _remove_if_abandoned(folder)
    made = Path(tempfile.mkdtemp(prefix=prefix))
    with contextlib.suppress(OSError):  # without a lock only this process removes it
        _lock(made)
    return made


def _folders(prefix: str) -> Iterator[Path]:
    """Yield the folders of this user with a prefix; no links."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                        yield Path(entry.path)


def _lock(folder: Path) -> None:
    """Lock a folder until this process ends: the descriptor is never closed.

    The file has its name only once it is locked, so that no other process can lock it before.
    """
    import fcntl

    unnamed = folder / f"{_LOCK}.new"
    descriptor = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(folder / _LOCK)


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder whose lock is free; one without a lock may be that of a process that has just made it."""
    import fcntl

    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # it is locked
        return
    finally:
        os.close(descriptor)
