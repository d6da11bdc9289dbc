"""The catalogue of recordings: finds them by name, lists them and describes each."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from servetop.core.errors import RecordingError, system_reason
from servetop.core.interfaces.recording_store import RecordingInfo, RecordingState
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.library.paths import SUFFIX, recordings_folder
from servetop.recordings.library.samples import is_sample_name, sample_path
from servetop.recordings.read.reader import RecordingReader

_TICKS_PER_SECOND = round(1 / TICK_SECONDS)


def list_recordings(folder: Path | None = None) -> list[RecordingInfo]:
    """Return all recordings in a folder, newest first, including unreadable ones; none if it does not exist."""
    folder = recordings_folder() if folder is None else folder
    try:
        paths = [path for path in folder.glob(f"*{SUFFIX}") if path.is_file()]
    except OSError as error:
        raise RecordingError(f"cannot list {folder} ({system_reason(error)})") from error
    return sorted((describe(path) for path in paths), key=lambda info: (info.started, info.path), reverse=True)


def latest(folder: Path | None = None) -> Path:
    """Return the newest readable recording; RecordingError if there is none."""
    folder = recordings_folder() if folder is None else folder
    for info in list_recordings(folder):
        if info.state is not RecordingState.UNREADABLE:
            return info.path
    raise RecordingError(f"no recording in {folder} yet: start a run to create one")


def resolve(name: str, *, folder: Path | None = None) -> Path:
    """Return the path of a recording: `latest`, a sample (`sample`, `sample:h200`), a path, or a name in the folder.

    The first two are reserved: a file or recording of that name needs `./` or its suffix,
    which other names may omit; of a name in the folder its label, its beginning or that of its label is enough if only
    one has it.
    RecordingError, with the closest name, if there is no such recording.
    """
    folder = recordings_folder() if folder is None else folder
    if name == "latest":
        return latest(folder)
    if is_sample_name(name):
        return sample_path(name)
    for path in (Path(name).expanduser(), folder / name, folder / f"{name}{SUFFIX}"):
        if path.is_file():
            return path
    known = [path.stem for path in folder.glob(f"*{SUFFIX}")]
    labelled = [stem for stem in known if f"-{name}-" in f"-{stem}-"]
    begun = labelled or [stem for stem in known if name and stem.startswith(name)]
    meant = begun or [stem for stem in known if name and f"-{name}" in stem]  # the beginning of a label
    if len(meant) == 1:
        return folder / f"{meant[0]}{SUFFIX}"
    if meant:
        verb = "are called" if labelled else "begin with" if begun else "have a part that begins with"
        raise RecordingError(f"{len(meant)} recordings {verb} {name}: use the whole name, as in {max(meant)}")
    close = difflib.get_close_matches(name.removesuffix(SUFFIX), known, n=1, cutoff=0.4)
    hint = f"did you mean {close[0]}?" if close else "servetop ls lists the recordings"
    raise RecordingError(f"no such recording: {name}: {hint}")


def describe(path: Path) -> RecordingInfo:
    """Describe a recording from its header and an index of its ticks, without changing the file."""
    return describe_with(path, describe_open)


def describe_with(path: Path, read: Callable[[RecordingReader], RecordingInfo]) -> RecordingInfo:
    """Return the result of `read` for a recording, or its info as unreadable; the file is not changed."""
    try:
        reader = RecordingReader.open(path, examine=False)
        try:
            return read(reader)
        finally:
            reader.close(merge_log=False)
    except RecordingError as error:
        return RecordingInfo(path=path, started=_written(path), state=RecordingState.UNREADABLE, problem=str(error))


def describe_open(reader: RecordingReader) -> RecordingInfo:
    """Describe an open recording."""
    header, end = reader.header, reader.end
    totals = reader.tick_totals(ticks_per_bin=_TICKS_PER_SECOND)
    state = RecordingState.FINISHED if end else RecordingState.LIVE if reader.is_live() else RecordingState.BROKEN_OFF
    facts, config = header.engine, header.config
    return RecordingInfo(
        path=reader.path,
        started=header.anchor.wall_epoch_s,
        state=state,
        engine=config.engine.known_as if facts is None else facts.name,
        model=(facts and facts.model) or config.engine.model,
        label=config.label,
        duration=totals.ticks_until * TICK_SECONDS if end is None else end.at,
        requests=totals.requests,
        peak_output_tokens_per_s=totals.max_bin_output_tokens * _TICKS_PER_SECOND / totals.ticks_per_bin,
        watch=config.watch is not None,
        exit_code=None if end is None else end.exit_code,
        problem=reader.damage or "",
    )


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
