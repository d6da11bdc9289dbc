"""Writes a file as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from servetop.core.errors import ServetopError, UsageError, system_reason
from servetop.recordings.library.paths import SUFFIX


def refuse_target(target: Path, *, instead: str, sources: Iterable[str | Path] = ()) -> None:
    """Raise UsageError for a folder, a recording or one of the files that are read, which must not be overwritten.

    `instead` is what to give.
    """
    if target.suffix == SUFFIX or target.is_dir():
        kind = "a folder" if target.is_dir() else f"a recording by its suffix {SUFFIX}"
        raise UsageError(f"--output {target} is {kind}: give {instead}")
    for source in sources:
        with contextlib.suppress(OSError):
            if target.is_file() and os.path.samefile(source, target):
                raise UsageError(f"--output {target} is a file that is read: give the name of another one")


def write_whole(target: Path, parts: Iterable[str | bytes], *, instead: str = "give another file with -o") -> None:
    """Write the parts of a file, text or bytes, one by one, and name it when it is complete.

    A device or named pipe is written in place. ServetopError if that fails; `instead` is what to do then.
    """
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(map(_encoded, parts))
        else:
            _replace(target, parts)
    except OSError as error:
        raise ServetopError(f"cannot write {target}: {system_reason(error)}: {instead}") from error


def _replace(target: Path, parts: Iterable[str | bytes]) -> None:
    number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
    try:
        with os.fdopen(number, "wb") as file:
            file.writelines(map(_encoded, parts))
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _encoded(part: str | bytes) -> bytes:
    return part.encode("utf-8", errors="replace") if isinstance(part, str) else part


def _umask() -> int:
    """Return the permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
