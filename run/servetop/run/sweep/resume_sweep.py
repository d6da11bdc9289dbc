"""What `--resume` needs: the recording of an interrupted sweep, and the cells that it does not hold completely."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from servetop.analysis.cells.attempts import AttemptState
from servetop.core.config import RunConfig, StageConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.recordings.format.header import as_recorded
from servetop.recordings.library.catalog import list_recordings
from servetop.recordings.library.paths import recordings_folder
from servetop.recordings.read.load_attempts import load_attempts
from servetop.recordings.read.reader import RecordingReader


def find_interrupted(config: RunConfig) -> Path:
    """Return the newest recording of the same sweep; UsageError when there is none."""
    for info in list_recordings(recordings_folder()):
        try:
            reader = RecordingReader.open(info.path)
        except RecordingError:
            continue
        same = _comparable(reader, config) == as_recorded(config)
        reader.close()
        if same:
            return info.path
    raise UsageError(f"no recording of {config.label} in {recordings_folder()}: run it without --resume first")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestOfSweep:
    """What an interrupted sweep has still to measure."""

    left: tuple[StageConfig, ...]
    """The cells that the recording does not contain completely, in order, without those that were skipped."""
    skipped: int
    """Cells that were skipped because their rows had ended."""


def rest_of_sweep(recording: Path, config: RunConfig) -> RestOfSweep:
    """Return the cells of a sweep that are left; RecordingError if the recording is of another one, or still grows."""
    reader = RecordingReader.open(recording)
    try:
        if reader.is_live():
            raise RecordingError(f"{recording} is still being written: watch it with servetop replay {recording}")
        if _comparable(reader, config) != as_recorded(config):
            raise RecordingError(f"{recording} was recorded with another configuration: run without --resume")
        skipped = reader.skipped_cells()
        attempts = load_attempts(reader, reader.ticks(), max_failures=config.max_failures)
    finally:
        reader.close()
    measured = [each.key for each in attempts.values() if each.state is AttemptState.WHOLE]
    missing = [cell for cell in config.stages if not any(key.covers(cell) for key in measured)]
    left = [cell for cell in missing if not any(each.is_of(cell) for each in skipped)]
    return RestOfSweep(left=_with_warmups(left, config), skipped=len(missing) - len(left))


def _with_warmups(left: Sequence[StageConfig], config: RunConfig) -> tuple[StageConfig, ...]:
    """Return what is left, with the warm-up of each repeat whose cells have a new start of the engine."""
    repeats = {cell.repeat for cell in left if not cell.warmup} if config.restart is not None else set()
    kept = [cell for cell in config.stages if cell.warmup and cell.repeat in repeats]
    return tuple(cell for cell in config.stages if cell in left or cell in kept)


def _comparable(reader: RecordingReader, config: RunConfig) -> RunConfig:
    """The recorded configuration without what may differ in a resumed sweep, such as predictions and prices."""
    return dataclasses.replace(
        reader.header.config, predicted=(), published=None, max_failures=config.max_failures, prices=config.prices
    )
