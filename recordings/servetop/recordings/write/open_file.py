"""Tracks the file of a growing recording, which may be moved or removed while it is written."""

from __future__ import annotations

import os
from pathlib import Path

_OWN_FILES = Path("/proc/self/fd")
_REMOVED = " (deleted)"


class OpenFile:
    """A file that this process has open, identified by device and inode."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = _identity(path)

    def current_path(self) -> Path | None:
        """Return the current path, which differs after a move; None if the file was removed or cannot be found."""
        try:
            if _identity(self.path) == self._identity:
                return self.path
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return self.path  # the file system does not respond: assume no change
        return self._moved_to()

    def _moved_to(self) -> Path | None:
        """Return the current path from Linux's list of the process's open files; None if it is not found."""
        try:
            links = [os.readlink(each) for each in _OWN_FILES.iterdir() if each.is_symlink()]
        except OSError:
            return None
        for link in links:
            if not link.endswith(_REMOVED) and link.startswith("/") and self._is_at(link):
                return Path(link)
        return None

    def _is_at(self, link: str) -> bool:
        try:
            return _identity(Path(link)) == self._identity
        except OSError:
            return False


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
