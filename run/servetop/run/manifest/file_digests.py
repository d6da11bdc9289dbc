"""Names, sizes and digests of files, as a manifest has them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MIB = 1 << 20
LARGEST_WHOLE = 1 << 30
"""Bytes; of a larger file only the first and last MiB are hashed."""
MOST_HASHED = 4 << 30
"""Bytes of a folder that are hashed before only the first and last MiB of each further file are."""
MOST_FILES = 2000


@dataclass(frozen=True, slots=True)
class HashedPart:
    """The part of a file that a digest covers."""

    name: str
    """As in `first MiB`; empty for all of it."""
    first: int | None = None
    """Bytes from the beginning; None: all."""
    last: int = 0
    """Bytes at the end."""


WHOLE = HashedPart("")
FIRST_MIB = HashedPart("first MiB", first=MIB)
BOTH_ENDS = HashedPart("first and last MiB", first=MIB, last=MIB)


def file_details(path: Path, part: HashedPart | None = WHOLE) -> dict[str, Any]:
    """Return `size`, `sha256` and, unless all of the file is hashed, `hashed`; None hashes nothing. OSError."""
    size = path.stat().st_size
    if part is None:
        return {"size": size}
    if part is WHOLE and size > LARGEST_WHOLE:
        part = BOTH_ENDS
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in _blocks(file, size, part):
            digest.update(block)
    details = {"size": size, "sha256": digest.hexdigest()}
    return {**details, "hashed": part.name} if part.name else details


def files_details(paths: Iterable[Path], part: HashedPart | None = WHOLE) -> dict[str, Any]:
    """Return the details of files by name; those that cannot be read are left out."""
    found = {}
    for path in paths:
        try:
            found[path.name] = file_details(path, part)
        except OSError:
            continue
    return found


def data_details(path: Path) -> dict[str, Any]:
    """Return the details of a file, or of all files below a folder by their path in it; empty if it does not exist."""
    if not path.is_dir():
        return files_details([path])
    found: dict[str, Any] = {}
    hashed = 0
    for each in _files_below(path):
        try:
            details = file_details(each, WHOLE if hashed < MOST_HASHED else BOTH_ENDS)
        except OSError:
            continue
        hashed += details["size"] if "hashed" not in details else 0
        found[each.relative_to(path).as_posix()] = details
        if len(found) == MOST_FILES:
            break
    return found


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder in order of their paths, without hidden ones."""
    for each in sorted(folder.iterdir()):
        if each.name.startswith("."):
            continue
        if each.is_dir():
            yield from _files_below(each)
        elif each.is_file():
            yield each


def _blocks(file: BinaryIO, size: int, part: HashedPart) -> Iterator[bytes]:
    left = size if part.first is None else part.first
    while left > 0 and (block := file.read(min(MIB, left))):
        left -= len(block)
        yield block
    if part.last:
        file.seek(max(size - part.last, file.tell()))
        yield file.read(part.last)
