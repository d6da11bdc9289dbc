"""Checks the recordings of watches: the thresholds of `servetop watch`, judged again for each server."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.fleet.watch_thresholds import ThresholdResult, WatchThreshold, parse_watch_threshold
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.check.check_report import CheckItem, CheckReport, ItemKind
from servetop.reports.comparison.load_comparison import recordings_named
from servetop.reports.summary.watch_checks import judged_servers


def watches_named(names: Sequence[str]) -> list[Path]:
    """Return the recordings if all are of watches, else nothing; UsageError if only some are."""
    with contextlib.suppress(RecordingError):  # the check of runs says what is wrong
        paths = list(itertools.chain.from_iterable(map(recordings_named, names)))
        watches = [path for path in paths if _is_watch(path)]
        if watches and len(watches) < len(paths):
            other = next(path for path in paths if path not in watches)
            raise UsageError(f"{watches[0]} is a recorded watch, and {other} is a run: check them one by one")
        return watches
    return []


def _is_watch(path: Path) -> bool:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return reader.header.config.watch is not None


def check_watches(paths: Sequence[Path], thresholds: Sequence[str]) -> CheckReport:
    """Judge thresholds, by default the recorded ones; how long each has to fail is the `--for` of its watch.

    UsageError without a threshold, for one that a watch does not have, and for a recording that still grows.
    """
    items: list[CheckItem] = []
    warnings: list[str] = []
    for path in paths:
        with contextlib.closing(RecordingReader.open(path)) as reader:
            items += _items(reader, thresholds, recording=path.stem if len(paths) > 1 else "")
            if reader.end is None:
                warnings.append(f"{path} is broken off: the end of its watch is missing")
            if reader.damage is not None:
                raise RecordingError(f"{path} is damaged: {reader.damage} (servetop verify shows what is sound)")
    return CheckReport(runs=[str(path) for path in paths], items=items, warnings=warnings)


def _items(reader: RecordingReader, thresholds: Sequence[str], *, recording: str) -> list[CheckItem]:
    if reader.is_live():
        raise UsageError(f"{reader.path} is still being written: wait for the end of its watch")
    config = reader.header.config
    wanted = [parse_watch_threshold(text) for text in thresholds or config.thresholds]
    if not wanted:
        raise UsageError(
            f"{reader.name} is a recorded watch without a threshold: give one, as in --threshold 'kv_usage<90%'"
        )
    hold = (config.watch or WatchConfig()).hold
    return [_item(*found, recording=recording) for found in judged_servers(reader, wanted, hold=hold)]


def _item(server: str, threshold: WatchThreshold, found: ThresholdResult, *, recording: str) -> CheckItem:
    outcome, text = CheckOutcome.KEPT, "it was not broken"
    if found.broken:
        outcome, text = CheckOutcome.BROKEN, f"it{found.broken.removeprefix(threshold.text)}"
    elif found.undecided:
        outcome, text = CheckOutcome.CANNOT_TELL, found.undecided.removeprefix(f"{threshold.text}: ")
    return CheckItem(
        kind=ItemKind.THRESHOLD, name=threshold.text, load=server, recording=recording, outcome=outcome, text=text
    )
