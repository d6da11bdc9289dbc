"""Several servers in one line: how many serve, which do not, and how evenly the load is spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text import formats

_NAMED = (ReplicaClass.DEAD, ReplicaClass.RESTARTED, ReplicaClass.SATURATED, ReplicaClass.QUEUE)
"""Classes whose servers are named."""
_MOST_NAMED = 6
"""Servers that are named in one line, at most."""
_COMPARED = ("title", "version", "model", "max_num_seqs", "max_model_len", "kv_blocks_total")
"""Facts in which servers of one deployment are alike."""


def fleet_line(rows: Sequence[ReplicaRow]) -> str:
    """Return the state of all, as in `3 of 4 serve; gpu7 KV-bound since 0:12; gpu9 no response since 0:20`."""
    listed = [row for row in rows if row.kind is not ReplicaClass.REMOVED]
    serving = sum(row.responds for row in listed)
    named = [_named(row) for row in listed if row.kind in _NAMED]
    parts = [f"{serving} of {len(listed)} serve", *named[:_MOST_NAMED]]
    if len(named) > _MOST_NAMED:
        parts.append(f"{len(named) - _MOST_NAMED} more")
    parts += [f"{row.name} differs: {row.differs}" for row in listed if row.differs][:_MOST_NAMED]
    return "; ".join(parts)


def _named(row: ReplicaRow) -> str:
    since = "" if math.isnan(row.since) else f" since {formats.clock(row.since)}"
    if row.kind is ReplicaClass.RESTARTED and row.restarted_at is not None:
        return f"{row.name} restarted at {formats.clock(row.restarted_at)}"
    return f"{row.name} {row.state}{since}"


def totals_text(rows: Sequence[ReplicaRow]) -> str:
    """Return sums of all servers, and the worst of them with its name; what is not exported is left out."""
    return " │ ".join(_totals(rows))


def _totals(rows: Sequence[ReplicaRow]) -> Iterator[str]:
    sums = {name: _sum(rows, name) for name in ("output", "running", "waiting", "preemptions")}
    if not math.isnan(sums["output"]):
        yield f"out {formats.count(sums['output'])} tok/s"
    for name in ("running", "waiting"):
        if not math.isnan(sums[name]):
            yield f"{name} {sums[name]:.0f}"
    if (worst := _worst(rows, "kv")) is not None:
        yield f"KV ≤ {formats.percent(worst.kv)} ({worst.name})"
    if not math.isnan(sums["preemptions"]):
        yield f"preemptions {sums['preemptions']:.1f}/s"
    if (worst := _worst(rows, "ttft_p90")) is not None:
        yield f"TTFT p90 ≤ {formats.seconds(worst.ttft_p90)} ({worst.name})"


def skew_text(rows: Sequence[ReplicaRow]) -> str:
    """Return the largest share relative to the mean, as in `skew: out 1.4×, waiting 3.0×`; empty if unknown."""
    names = {"output": "out", "waiting": "waiting"}
    known = {name: skew([getattr(row, name) for row in rows if row.responds]) for name in names}
    parts = [f"{names[name]} {value:.1f}×" for name, value in known.items() if not math.isnan(value)]
    return f"skew {', '.join(parts)}" if parts else ""


def skew(values: Sequence[float]) -> float:
    """Return the largest value relative to the mean; NaN for fewer than two, or if all are 0."""
    known = [value for value in values if not math.isnan(value)]
    mean = sum(known) / len(known) if known else 0.0
    return max(known) / mean if len(known) > 1 and mean > 0 else math.nan


def differences(facts: Mapping[int, EngineFacts]) -> dict[int, str]:
    """Return what is not as at most servers, by number; servers without a difference are left out."""
    found: dict[int, list[str]] = {}
    for name in _COMPARED:
        values = {number: getattr(each, name) for number, each in facts.items()}
        usual, count = Counter(values.values()).most_common(1)[0] if values else (None, 0)
        if 2 * count > len(values):
            for number, value in values.items():
                if value != usual:
                    found.setdefault(number, []).append(f"{name} {value} ({usual} elsewhere)")
    return {number: ", ".join(texts) for number, texts in found.items()}


def _sum(rows: Sequence[ReplicaRow], name: str) -> float:
    known = [value for row in rows if row.responds and not math.isnan(value := getattr(row, name))]
    return sum(known) if known else math.nan


def _worst(rows: Sequence[ReplicaRow], name: str) -> ReplicaRow | None:
    known = [row for row in rows if row.responds and not math.isnan(getattr(row, name))]
    return max(known, key=lambda row: float(getattr(row, name)), default=None)
