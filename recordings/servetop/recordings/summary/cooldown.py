"""The last part of each stage's load, whose requests keep it up while those before them end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.analysis.columns.run_columns import RunColumns
from servetop.recordings.read.reader import RecordingReader


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolDowns:
    """When each stage's cool-down began, and how many requests were due from then on; empty without any."""

    starts: Mapping[int, float] = field(default_factory=dict)
    """By stage: so long before its last request was due."""
    requests: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def load(cls, reader: RecordingReader, run: RunColumns) -> CoolDowns:
        """From all rows; nothing is read when the run has no cool-down."""
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
