"""Files that come with servetop, as paths, also where servetop is imported from a zip archive."""

from __future__ import annotations

import functools
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


@functools.cache
def package_path(package: str, name: str) -> Path:
    """A file or folder of a package; one inside an archive is unpacked for as long as this process lives."""
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
