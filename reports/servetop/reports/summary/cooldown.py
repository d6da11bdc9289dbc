"""Cool-downs: the last part of each stage, whose requests sustain the load while earlier ones finish."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.analysis.columns.run_columns import RunStages
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.reader import RecordingReader


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolDowns:
    """The start of each stage's cool-down and its number of requests; empty without a cool-down."""

    starts: Mapping[int, float] = field(default_factory=dict)
    """Start by stage: the configured seconds before the due time of the stage's last request."""
    requests: Mapping[int, int] = field(default_factory=dict)
    """Number of requests due from the start on, by stage."""

    def excluded(self, run: RunStages) -> tuple[tuple[int, float], ...]:
        """Return what a selection of the whole run excludes: the cool-downs, and the stages that do not count."""
        return (*self.starts.items(), *((each.change.index, -math.inf) for each in run.superseded))

    @classmethod
    def load(cls, reader: RecordingReader, run: RunStages) -> CoolDowns:
        """Compute the cool-downs from all request rows; without a cool-down, nothing is read."""
        seconds = run.header.config.cooldown
        if not seconds:
            return cls()
        last: dict[int, float] = {}
        for stage, due in reader.request_rows(("stage", "due")):
            last[stage] = max(last.get(stage, -math.inf), due)
        starts = {
            each.change.index: last[each.change.index] - seconds
            for each in run.stages
            if not each.change.warmup and each.change.index in last
        }
        requests = dict.fromkeys(starts, 0)
        for stage, due in reader.request_rows(("stage", "due")):
            if stage in starts and due >= starts[stage]:
                requests[stage] += 1
        return cls(starts=starts, requests=requests)


def whole_selection(run: RunStages, cooldowns: CoolDowns) -> Selection:
    """Return what selects the requests of a run's totals: without warm-up, cool-downs, and stages that do not count."""
    start = None if run.warm_at == -math.inf else run.warm_at
    return Selection(start=start, excluded=cooldowns.excluded(run))
