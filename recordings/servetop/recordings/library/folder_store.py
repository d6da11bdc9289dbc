"""The recordings folder as a store: list, preview, open, rename and delete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from servetop.core.clock import wall_clock
from servetop.core.errors import RecordingError, system_reason
from servetop.core.interfaces.recording_store import (
    RecordingInfo,
    RecordingPreview,
    RecordingResults,
    RecordingState,
)
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.library.catalog import describe, describe_open, describe_with
from servetop.recordings.library.paths import SUFFIX, recordings_folder
from servetop.recordings.read.reader import RecordingReader

MAY_GROW_SECONDS = 60.0
"""A recording without an end may still grow this long after its last write, if its writer is on another machine."""
_MAX_NAME_BYTES = 200
"""Limit below the 255 of file systems, because SQLite adds suffixes."""
_COMPANIONS = ("-wal", "-shm", "-journal")


class FolderStore:
    """The `RecordingStore` of a folder of files."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder, by default the recordings folder."""
        self._folder = recordings_folder() if folder is None else folder
        self._opened: RecordingReader | None = None

    @property
    def location(self) -> str:
        """The folder's path."""
        return str(self._folder)

    def paths(self) -> Sequence[Path]:
        """Return the paths of all recordings, last written first; none if the folder does not exist."""
        try:
            with os.scandir(self._folder) as entries:
                found = [(entry.stat().st_mtime, entry.path) for entry in entries if _is_recording(entry)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RecordingError(
                f"cannot list {self._folder} ({system_reason(error)}): check its permissions"
            ) from error
        return [Path(path) for _, path in sorted(found, reverse=True)]

    def newest(self) -> Path:
        """Return the readable recording that was written last; RecordingError if there is none."""
        for path in self.paths():
            with contextlib.suppress(RecordingError):
                RecordingReader.open(path).close(merge_log=False)
                return path
        raise RecordingError(f"no recording in {self._folder} yet: start a run to create one")

    def preview(self, path: Path, *, bins: int) -> RecordingPreview:
        """Return header, totals and throughput over time, read from an index without changing the file."""
        rates: list[float] = []
        results = RecordingResults()

        def read(reader: RecordingReader) -> RecordingInfo:
            nonlocal results
            rates.extend(_output_rates(reader, bins))
            results = reader.quick_results()
            return describe_open(reader)

        return RecordingPreview(info=describe_with(path, read), results=results, output_rates=tuple(rates))

    def open(self, path: Path) -> RecordingReader:
        """Open a reader, and close the previous one."""
        reader = RecordingReader.open(path)
        self.close()
        self._opened = reader
        return reader

    def close(self) -> None:
        """Close the open reader, if any."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    def rename(self, path: Path, name: str) -> Path:
        """Rename a recording without overwriting another one (by a hard link, if the file system supports it)."""
        target = path.with_name(_checked_name(name))
        if target == path:
            return path
        _check_ended(path, "renamed")
        _checkpoint(path)
        try:
            _move(path, target)
        except FileExistsError:
            raise RecordingError(f"a recording {target.stem} already exists: choose another name") from None
        except OSError as error:
            raise RecordingError(f"cannot rename {path.name} ({system_reason(error)})") from error
        return target

    def delete(self, path: Path) -> None:
        """Delete the file, and SQLite's companion files."""
        _check_ended(path, "deleted")
        try:
            path.unlink(missing_ok=True)
            for suffix in _COMPANIONS:
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise RecordingError(f"cannot delete {path.name} ({system_reason(error)})") from error


def _is_recording(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(SUFFIX) and entry.is_file()


def _output_rates(reader: RecordingReader, bins: int) -> list[float]:
    ticks = reader.tick_totals(ticks_per_bin=1).ticks_until
    width = max(1, -(-ticks // bins))
    rates = [0.0] * -(-ticks // width)
    for number, tokens in reader.output_tokens_by_bin(ticks_per_bin=width):
        if 0 <= number < len(rates):
            rates[number] = tokens / (min(width, ticks - number * width) * TICK_SECONDS)
    return rates


def _check_ended(path: Path, operation: str) -> None:
    """Raise RecordingError if the run is still active, or may be on another machine."""
    if not path.is_file():
        raise RecordingError(f"{path.name} no longer exists")
    info = describe(path)
    if info.state is RecordingState.LIVE:
        raise RecordingError(f"{path.stem} is being recorded: stop its run first, then it can be {operation}")
    age = wall_clock() - max(_written(path), _written(path.with_name(path.name + "-wal")))
    if info.state is not RecordingState.FINISHED and age < MAY_GROW_SECONDS:
        wait = f"try again in {MAY_GROW_SECONDS - max(age, 0.0):.0f} s"
        raise RecordingError(f"{path.stem} was written a moment ago and has no end, so it may still grow: {wait}")


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _checked_name(name: str) -> str:
    stem = name.strip().removesuffix(SUFFIX)
    if not stem or stem.startswith(".") or "/" in stem or "\\" in stem or not stem.isprintable():
        raise RecordingError("invalid name: a recording's name needs a letter, and no / or leading dot")
    if len(stem.encode()) > _MAX_NAME_BYTES:
        raise RecordingError(f"this name is too long: use at most {_MAX_NAME_BYTES} bytes")
    return stem + SUFFIX


def _checkpoint(path: Path) -> None:
    """Merge the write-ahead log before the file is renamed, because SQLite finds the log by the file's name."""
    with contextlib.suppress(RecordingError):
        RecordingReader.open(path).close()
    if path.with_name(f"{path.name}-wal").exists():
        raise RecordingError(f"{path.stem} is open in another program: close it there, then rename it")


def _move(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(target) from None
        path.rename(target)
    else:
        path.unlink()
