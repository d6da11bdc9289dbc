"""The recordings folder as a store: list, preview, open, rename and delete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from servetop.core.clock import wall_clock
from servetop.core.errors import RecordingError
from servetop.core.interfaces.recording_store import RecordingInfo, RecordingPreview, RecordingState
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.library.catalog import describe, described, read_or_blame
from servetop.recordings.library.paths import SUFFIX, recordings_folder
from servetop.recordings.read.reader import RecordingReader

STILL_WARM = 60.0
"""Seconds since its last write in which a recording without an end may still grow, on another machine."""
_LONGEST_NAME = 200
"""Bytes; file systems allow 255, and SQLite adds suffixes."""
_COMPANIONS = ("-wal", "-shm", "-journal")


class FolderStore:
    """Implements `RecordingStore` on a folder of files."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder, by default the recordings folder."""
        self._folder = recordings_folder() if folder is None else folder
        self._opened: RecordingReader | None = None

    @property
    def location(self) -> str:
        """The folder's path."""
        return str(self._folder)

    def paths(self) -> Sequence[Path]:
        """Paths of all recordings, the last written first; none if the folder does not exist."""
        try:
            with os.scandir(self._folder) as entries:
                found = [(entry.stat().st_mtime, entry.path) for entry in entries if _is_recording(entry)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RecordingError(f"cannot list {self._folder} ({_reason(error)}): check its permissions") from error
        return [Path(path) for _, path in sorted(found, reverse=True)]

    def newest(self) -> Path:
        """The readable recording written last; RecordingError without one."""
        for path in self.paths():
            with contextlib.suppress(RecordingError):
                RecordingReader.open(path).close(tidy=False)
                return path
        raise RecordingError(f"no recording in {self._folder} yet: start a run to make one")

    def preview(self, path: Path, *, bins: int) -> RecordingPreview:
        """Header, totals, and throughput over time, read from an index without changing the file."""
        rates: list[float] = []

        def read(reader: RecordingReader) -> RecordingInfo:
            rates.extend(_output_rates(reader, bins))
            return described(reader)

        return RecordingPreview(info=read_or_blame(path, read), output_rates=tuple(rates))

    def open(self, path: Path) -> RecordingReader:
        """Open a reader; the previous one is closed."""
        reader = RecordingReader.open(path)
        self.close()
        self._opened = reader
        return reader

    def close(self) -> None:
        """Close the last opened reader."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    def rename(self, path: Path, name: str) -> Path:
        """Rename by a hard link where the file system has them, so that nothing is overwritten."""
        target = path.with_name(_checked_name(name))
        if target == path:
            return path
        _check_over(path, "renamed")
        _fold(path)
        try:
            _move(path, target)
        except FileExistsError:
            raise RecordingError(f"there is a recording {target.stem} already: choose another name") from None
        except OSError as error:
            raise RecordingError(f"cannot rename {path.name} ({_reason(error)})") from error
        return target

    def delete(self, path: Path) -> None:
        """Delete the file and SQLite's files beside it."""
        _check_over(path, "deleted")
        try:
            path.unlink(missing_ok=True)
            for ending in _COMPANIONS:
                path.with_name(path.name + ending).unlink(missing_ok=True)
        except OSError as error:
            raise RecordingError(f"cannot delete {path.name} ({_reason(error)})") from error


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


def _check_over(path: Path, done: str) -> None:
    """RecordingError while the run lasts, or may last on another machine."""
    if not path.is_file():
        raise RecordingError(f"{path.name} no longer exists")
    info = describe(path)
    if info.state is RecordingState.LIVE:
        raise RecordingError(f"{path.stem} is being recorded: stop its run first, then it can be {done}")
    age = wall_clock() - max(_written(path), _written(path.with_name(path.name + "-wal")))
    if info.state is not RecordingState.FINISHED and age < STILL_WARM:
        wait = f"try again in {STILL_WARM - max(age, 0.0):.0f} s"
        raise RecordingError(f"{path.stem} was written a moment ago and has no end, it may be growing: {wait}")


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _checked_name(name: str) -> str:
    stem = name.strip().removesuffix(SUFFIX)
    if not stem or stem.startswith(".") or "/" in stem or "\\" in stem or not stem.isprintable():
        raise RecordingError("invalid name: a recording's name needs a letter, and no / or leading dot")
    if len(stem.encode()) > _LONGEST_NAME:
        raise RecordingError(f"this name is too long: {_LONGEST_NAME} bytes at most")
    return stem + SUFFIX


def _fold(path: Path) -> None:
    """Merge the write-ahead log, which belongs to its file by name, before the name changes."""
    with contextlib.suppress(RecordingError):
        RecordingReader.open(path).close()
    if path.with_name(f"{path.name}-wal").exists():
        raise RecordingError(f"{path.stem} is open in another program: close that, then rename it")


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


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
