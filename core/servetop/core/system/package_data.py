"""Paths of the files shipped with servetop, also if it is imported from a zip archive."""

from __future__ import annotations

import functools
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


@functools.cache
def package_path(package: str, name: str) -> Path:
    """Return the path of a file or folder of a package; one in an archive is unpacked until this process ends."""
    found = resources.files(package) / name
    return found if isinstance(found, Path) else _unpacked(found)


def _unpacked(found: Traversable) -> Path:
    import atexit
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="servetop-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _copy(found, folder / found.name)
    return folder / found.name


def _copy(found: Traversable, target: Path) -> None:
    if not found.is_dir():
        target.write_bytes(found.read_bytes())
        return
    target.mkdir()
    for each in found.iterdir():
        _copy(each, target / each.name)
