"""The catalogue of recordings: where they are, their names, and a line about each."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from servetop.core.errors import RecordingError
from servetop.core.interfaces.recording_store import RecordingInfo, RecordingState
from servetop.core.system.package_data import package_path
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.library.paths import SUFFIX, recordings_folder
from servetop.recordings.read.reader import RecordingReader

SAMPLE = "sample:"
"""Prefix of the names of recordings shipped with servetop."""
_TICKS_PER_SECOND = round(1 / TICK_SECONDS)


def list_recordings(folder: Path | None = None) -> list[RecordingInfo]:
    """All recordings in a folder, newest first, including unreadable ones; none if the folder does not exist."""
    place = recordings_folder() if folder is None else folder
    try:
        paths = [path for path in place.glob(f"*{SUFFIX}") if path.is_file()]
    except OSError as error:
        raise RecordingError(f"cannot list {place} ({(error.strerror or str(error)).lower()})") from error
    return sorted((describe(path) for path in paths), key=lambda info: (info.started, info.path), reverse=True)


def latest(folder: Path | None = None) -> Path:
    """The newest readable recording; RecordingError without one."""
    place = recordings_folder() if folder is None else folder
    for info in list_recordings(place):
        if info.state is not RecordingState.UNREADABLE:
            return info.path
    raise RecordingError(f"no recording in {place} yet: start a run to make one")


def sample_names() -> list[str]:
    """The recordings shipped with servetop, such as `sample:h200`."""
    return sorted(f"{SAMPLE}{path.stem}" for path in _samples().glob(f"*{SUFFIX}"))


def resolve(name: str, *, folder: Path | None = None) -> Path:
    """The path of `latest`, a sample (`sample:h200`), a path, or a file's name in the folder, with or
    without its suffix.

    RecordingError if there is no such recording, with the nearest name.
    """
    place = recordings_folder() if folder is None else folder
    if name == "latest":
        return latest(place)
    if name.startswith(SAMPLE):
        return _sample(name)
    for path in (Path(name).expanduser(), place / name, place / f"{name}{SUFFIX}"):
        if path.is_file():
            return path
    known = [path.stem for path in place.glob(f"*{SUFFIX}")]
    near = difflib.get_close_matches(name.removesuffix(SUFFIX), known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "servetop ls lists the recordings"
    raise RecordingError(f"there is no recording {name}: {hint}")


def _samples() -> Path:
    return package_path("servetop.recordings", "shipped")


def _sample(name: str) -> Path:
    if name not in sample_names():
        raise RecordingError(f"unknown sample {name}: servetop has {', '.join(sample_names())}")
    return _samples() / f"{name.removeprefix(SAMPLE)}{SUFFIX}"


def describe(path: Path) -> RecordingInfo:
    """Describe a recording from its header and an index over its ticks, without changing the file."""
    return read_or_blame(path, described)


def read_or_blame(path: Path, read: Callable[[RecordingReader], RecordingInfo]) -> RecordingInfo:
    """The result of `read` on a recording, whose file stays unchanged, or why it is unreadable."""
    try:
        reader = RecordingReader.open(path, examine=False)
        try:
            return read(reader)
        finally:
            reader.close(tidy=False)
    except RecordingError as error:
        return RecordingInfo(path=path, started=_written(path), state=RecordingState.UNREADABLE, problem=str(error))


def described(reader: RecordingReader) -> RecordingInfo:
    """Describe an open recording."""
    header, end = reader.header, reader.end
    totals = reader.tick_totals(ticks_per_bin=_TICKS_PER_SECOND)
    state = RecordingState.FINISHED if end else RecordingState.LIVE if reader.is_live() else RecordingState.BROKEN_OFF
    facts, config = header.engine, header.config
    return RecordingInfo(
        path=reader.path,
        started=header.anchor.wall_epoch_s,
        state=state,
        engine=config.engine.name if facts is None else facts.name,
        model=(facts and facts.model) or config.engine.model,
        label=config.label,
        duration=totals.ticks_until * TICK_SECONDS if end is None else end.at,
        requests=totals.requests,
        peak_output_tokens_per_s=totals.most_output_tokens * _TICKS_PER_SECOND / totals.ticks_per_bin,
        exit_code=None if end is None else end.exit_code,
        problem=reader.damage or "",
    )


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
