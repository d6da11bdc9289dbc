"""The folder of a series of pairs: a recording for each run, from which an interrupted series is resumed."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode, RecordingError, UsageError
from servetop.recordings.format.header import as_recorded
from servetop.recordings.library.paths import SUFFIX
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_arm import load_arm_run
from servetop.reports.summary.summary import run_summary

DISCARDED = "discarded"
"""Folder of the recordings that do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmConfigs:
    """The configurations of the two arms, which send the same requests."""

    a: RunConfig
    b: RunConfig

    def of(self, arm: str, *, seed: int) -> RunConfig:
        """Return the configuration of a run of arm `a` or `b`."""
        return dataclasses.replace(self.a if arm == "a" else self.b, seed=seed)

    @property
    def restarts(self) -> bool:
        """Whether every run starts its engine."""
        return self.a.engine.url is None and self.b.engine.url is None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesRun:
    """A recorded run of one arm."""

    seconds: float
    """Run time until its end, including the start of the engine."""
    exit_code: int
    reason: str
    """Why it does not count; empty if it does."""
    client_bound: bool = False
    """It does not count because the client was the bottleneck."""
    measured: ArmRun | None = None
    """The measurements of a run that counts."""


class SeriesFolder:
    """The recordings `a-001.servetop`, `b-001.servetop` and so on, one pair for each number."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def recording(self, arm: str, pair: int) -> Path:
        """Return the file of a run; pairs count from 1."""
        return self.path / f"{arm}-{pair:03d}{SUFFIX}"

    def recordings(self) -> list[Path]:
        """Return the files of all runs."""
        return sorted([*self.path.glob(f"a-*{SUFFIX}"), *self.path.glob(f"b-*{SUFFIX}")])

    def check_new(self) -> None:
        """UsageError if the folder contains runs of an earlier series."""
        if self.recordings():
            raise UsageError(f"{self.path} contains a series already: add --resume, or choose another folder")

    def measured_pairs(self, configs: ArmConfigs, *, seed: int) -> list[tuple[SeriesRun, SeriesRun]]:
        """Load the complete pairs, from the first on, and discard all other recordings.

        RecordingError for a recording of another configuration, or one that is still being written.
        """
        for path in self.recordings():
            _check_ended(path)
        pairs: list[tuple[SeriesRun, SeriesRun]] = []
        while True:
            number = len(pairs) + 1
            a, b = (self._resumed(arm, number, configs.of(arm, seed=seed + number)) for arm in "ab")
            if a is None or b is None:
                break
            pairs.append((a, b))
        kept = {self.recording(arm, number) for arm in "ab" for number in range(1, len(pairs) + 1)}
        for path in self.recordings():
            if path not in kept:
                self.discard(path)
        return pairs

    def _resumed(self, arm: str, pair: int, config: RunConfig) -> SeriesRun | None:
        """Return a run of an earlier session; None if it is missing or does not count."""
        path = self.recording(arm, pair)
        try:
            with contextlib.closing(RecordingReader.open(path)) as reader:
                recorded = reader.header.config
        except RecordingError:
            return None
        if recorded != as_recorded(config):
            raise RecordingError(f"{path} was recorded with another configuration or seed: choose another folder")
        run = read_run(path)
        return run if run.measured is not None else None

    def discard(self, path: Path) -> Path:
        """Move a recording that does not count to the folder `discarded`; return its new path."""
        folder = self.path / DISCARDED
        folder.mkdir(exist_ok=True)
        number = 1
        while (target := folder / f"{path.stem}-{number}{SUFFIX}").exists():
            number += 1
        path.replace(target)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).replace(target.with_name(target.name + suffix))
        return target


def _check_ended(path: Path) -> None:
    """RecordingError if the run of a recording is active; one that cannot be read is not."""
    try:
        reader = RecordingReader.open(path)
    except RecordingError:
        return
    with contextlib.closing(reader):
        if reader.is_live():
            raise RecordingError(f"{path} is still being written: watch it with servetop replay {path}")


def read_run(path: Path) -> SeriesRun:
    """Load a recording whose run has ended; one that failed or whose client was the bottleneck does not count."""
    with contextlib.closing(RecordingReader.open(path)) as reader:
        end = reader.end
        if end is None:
            return SeriesRun(seconds=0.0, exit_code=ExitCode.RUN_FAILED, reason="the run was broken off")
        if end.exit_code not in (ExitCode.OK, ExitCode.THRESHOLDS) or (end.reason and end.exit_code == ExitCode.OK):
            return SeriesRun(seconds=end.at, exit_code=end.exit_code, reason=end.reason)
        if end.exit_code == ExitCode.OK:
            return SeriesRun(seconds=end.at, exit_code=end.exit_code, reason="", measured=load_arm_run(reader))
        trust = run_summary(reader).measured.trust
    if trust.verdict == TrustVerdict.CLIENT_BOUND:
        reason = f"the client was the bottleneck: {', '.join(trust.reasons)}"
        return SeriesRun(seconds=end.at, exit_code=end.exit_code, reason=reason, client_bound=True)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return SeriesRun(seconds=end.at, exit_code=end.exit_code, reason="", measured=load_arm_run(reader))
