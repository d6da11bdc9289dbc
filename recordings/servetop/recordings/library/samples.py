"""The recordings shipped with servetop: `sample:h200`, and `sample:overload`, also called `sample`."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from servetop.core.errors import RecordingError
from servetop.core.system.package_data import package_path
from servetop.recordings.library.paths import SUFFIX

SAMPLE = "sample"
"""Reserved name of the recording that the tutorial and the README's pictures use."""
_PREFIX = f"{SAMPLE}:"
_SAMPLE_STEM = "overload"
_COMPRESSED = f"{SUFFIX}.xz"


def sample_names() -> list[str]:
    """Return the full names of the shipped recordings, such as `sample:h200`."""
    stems = {path.name.partition(".")[0] for path in _folder().iterdir() if path.name.endswith((SUFFIX, _COMPRESSED))}
    return sorted(_PREFIX + stem for stem in stems)


def is_sample_name(name: str) -> bool:
    """Whether a name is reserved for shipped recordings: `sample`, or one that starts with `sample:`."""
    return name == SAMPLE or name.startswith(_PREFIX)


def sample_path(name: str) -> Path:
    """Return the path of a shipped recording; a compressed one is unpacked until this process ends."""
    full_name = f"{_PREFIX}{_SAMPLE_STEM}" if name == SAMPLE else name
    if full_name not in sample_names():
        raise RecordingError(f"unknown sample {name}: servetop has {', '.join(sample_names())}")
    stem = full_name.removeprefix(_PREFIX)
    path = _folder() / f"{stem}{SUFFIX}"
    return path if path.is_file() else _unpacked(_folder() / f"{stem}{_COMPRESSED}")


def _folder() -> Path:
    return package_path("servetop.recordings", "shipped")


@functools.cache
def _unpacked(archive: Path) -> Path:
    import atexit
    import lzma
    import shutil

    from servetop.recordings.library.temporary_folder import make_temporary_folder

    folder = make_temporary_folder("servetop-sample-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _remove_at_hangup(folder)
    path = folder / archive.stem
    path.write_bytes(lzma.decompress(archive.read_bytes()))
    return path


def _remove_at_hangup(folder: Path) -> None:
    """Remove a folder when the terminal is closed (SIGHUP), which ends this process without its exit handlers."""
    import shutil
    import signal
    import threading

    def remove(number: int, frame: object) -> None:
        del frame
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    handled = signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
    if threading.current_thread() is threading.main_thread() and not handled:
        signal.signal(signal.SIGHUP, remove)
