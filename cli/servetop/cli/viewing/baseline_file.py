"""The recording that `--against` names: checked before a run starts, opened when the dashboard asks for it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.cli.options.output_options import DisplayOptions

if TYPE_CHECKING:
    from servetop.core.interfaces.run_source import RunSource


def with_baseline_path(display: DisplayOptions) -> DisplayOptions:
    """Returns the options with the path of the baseline instead of its name; RecordingError if it cannot be read.

    `latest` is the newest recording before the run that is about to start.
    """
    if not display.against:
        return display
    from servetop.recordings.library.catalog import resolve
    from servetop.recordings.read.reader import RecordingReader

    path = resolve(display.against).absolute()
    RecordingReader.open(path, examine=False).close(merge_log=False)
    return dataclasses.replace(display, against=str(path))


def baseline_opener(display: DisplayOptions) -> Callable[[], AbstractContextManager[RunSource]] | None:
    """Returns what opens the baseline, and closes it again; None without `--against`."""
    if not display.against:
        return None

    def opened() -> AbstractContextManager[RunSource]:
        from servetop.recordings.read.reader import RecordingReader

        return contextlib.closing(RecordingReader.open(Path(display.against)))

    return opened
