"""Changes of the engine's batch size under load, and the restarts that they need, in one sentence for the story."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.run_record import RunRecord, restarts
from servetop.core.text.counted import counted

_UNKNOWN = "None"
"""The batch size of an engine that did not tell its own, in the note of a restart."""
_MOST_SIZES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChange:
    """A change of max_num_seqs; the sizes are texts, because an engine may not tell the one it started with."""

    at: float
    """Seconds since the run's origin."""
    before: str
    after: str


def batch_changes(run: RunRecord) -> list[BatchChange]:
    """Return the changes from the start of the load on: those of a running engine by its samples, others by restart."""
    facts = run.header.engine
    changes = _sampled(run) if facts is not None and facts.changes_batch_size_live else _restarted(run)
    return [change for change in changes if change.at > run.load_since]


def change_text(run: RunRecord, changes: Sequence[BatchChange]) -> str:
    """Describe the changes of a run, such as `the engine restarts with another batch size: max_num_seqs 16 → 8`."""
    facts = run.header.engine
    live = facts is not None and facts.changes_batch_size_live
    sizes = [*({changes[0].before} - {_UNKNOWN}), *(each.after for each in changes)]
    listed = " → ".join(sizes if len(sizes) <= _MOST_SIZES else [*sizes[:3], "…", *sizes[-2:]])
    times = "" if len(changes) == 1 else f" {counted(len(changes), 'time')}"
    what = f"the batch size changes{times}" if live else f"the engine restarts{times} with another batch size"
    return f"{what}: max_num_seqs {listed}"


def _restarted(run: RunRecord) -> list[BatchChange]:
    found = []
    for note in restarts(run.notes):
        sizes, _, _ = note.text.removeprefix("max_num_seqs ").partition(": ")
        before, _, after = sizes.partition(" → ")
        found.append(BatchChange(at=note.at, before=before, after=after))
    return found


def _sampled(run: RunRecord) -> list[BatchChange]:
    sizes = run.history.column("max_num_seqs")
    known = np.flatnonzero(~np.isnan(sizes))
    values = sizes[known]
    return [
        BatchChange(
            at=run.history.ticks[int(known[step + 1])].end,
            before=f"{values[step]:.0f}",
            after=f"{values[step + 1]:.0f}",
        )
        for step in np.flatnonzero(np.diff(values))
    ]
