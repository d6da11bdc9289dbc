"""Several servers in one line: how many serve, which do not, and how evenly the load is spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.fleet.slower_servers import SLOWER
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text import formats

_NAMED = (
    ReplicaClass.DEAD, ReplicaClass.FAILING, ReplicaClass.RESTARTED, ReplicaClass.DRAINING, ReplicaClass.SATURATED,
    ReplicaClass.QUEUE, ReplicaClass.SLOW,
)  # fmt: skip
"""Classes whose servers are named."""
_MOST_NAMED = 3
"""Servers of one state that are named; more of them are counted."""
_MOST_SKEWED = 3
"""Figures of which the skew is said, the worst first."""
_SKEWED = {"output": "out", "waiting": "waiting", "kv": "KV", "ttft_p90": "TTFT p90", "per_token": "ITL"}
"""Figures that are alike at servers that share a load evenly, with their names in the line."""
_COMPARED = ("title", "version", "model", "max_num_seqs", "max_model_len", "kv_blocks_total")
"""Facts in which servers of one deployment are alike."""


def fleet_line(rows: Sequence[ReplicaRow]) -> str:
    """Return the state of all, as in `3 of 4 serve; gpu7 KV-bound since 0:12; gpu9 no response since 0:20`.

    Of many servers in one state the first are named: `50 servers: requests wait since 0:05 (a, b, c and 47 more)`.
    """
    listed = [row for row in rows if row.kind is not ReplicaClass.REMOVED]
    serving = sum(row.serves for row in listed)
    by_state: dict[str, list[ReplicaRow]] = {}
    for row in listed:
        if row.kind in _NAMED:
            by_state.setdefault(_state(row), []).append(row)
    parts = [f"{serving} of {len(listed)} serve"]
    for state, alike in by_state.items():
        parts += [f"{row.name} {state}{_since(row)}" for row in alike] if len(alike) <= _MOST_NAMED else [_many(alike)]
    parts += _differing(listed)
    return "; ".join(parts)


def _state(row: ReplicaRow) -> str:
    return "restarted" if row.kind is ReplicaClass.RESTARTED and row.restarted_at is not None else row.state


def _since(row: ReplicaRow) -> str:
    since = "" if math.isnan(row.since) else f" since {formats.clock(row.since)}"
    if row.kind is ReplicaClass.SLOW:
        return f"{since} ({row.slower})"
    if row.kind is ReplicaClass.RESTARTED and row.restarted_at is not None:
        since = f" at {formats.clock(row.restarted_at)}"
    return f"{since}, {SLOWER} ({row.slower})" if row.slower else since


def _many(rows: Sequence[ReplicaRow]) -> str:
    """Return several servers of one state with the first since when one of them has it."""
    known = [row for row in rows if not math.isnan(row.since)]
    since = f" since {formats.clock(min(row.since for row in known))}" if known else ""
    return f"{len(rows)} servers: {_state(rows[0])}{since} ({names_text([row.name for row in rows])})"


def _differing(rows: Sequence[ReplicaRow]) -> Iterator[str]:
    by_text: dict[str, list[str]] = {}
    for row in rows:
        if row.differs:
            by_text.setdefault(row.differs, []).append(row.name)
    for text, names in list(by_text.items())[:_MOST_NAMED]:
        if len(names) <= _MOST_NAMED:
            yield from (f"{name} differs: {text}" for name in names)
        else:
            yield f"{len(names)} servers differ: {text} ({names_text(names)})"
    if (more := sum(map(len, list(by_text.values())[_MOST_NAMED:]))) > 0:
        yield f"{more} more {'differs' if more == 1 else 'differ'}"


def names_text(names: Sequence[str], *, most: int = _MOST_NAMED) -> str:
    """Return the first names and how many there are besides, as in `a, b, c and 47 more`."""
    more = len(names) - most
    first = ", ".join(names[:most])
    return f"{first} and {more} more" if more > 0 else first


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
    """Return the largest shares relative to the mean, the worst first, as in `skew waiting 3.0× (gpu7), out 1.4× (b)`.

    Empty if nothing is known of two servers. Servers that take no requests share no load.
    """
    rows = [row for row in rows if row.serves]
    known = {name: skew([getattr(row, name) for row in rows]) for name in _SKEWED}
    worst = sorted((name for name in known if not math.isnan(known[name])), key=lambda name: -known[name])
    named = [(name, row) for name in worst[:_MOST_SKEWED] if (row := _worst(rows, name)) is not None]
    parts = [f"{_SKEWED[name]} {known[name]:.1f}× ({row.name})" for name, row in named]
    return f"skew {', '.join(parts)}" if parts else ""


def skew(values: Sequence[float]) -> float:
    """Return the largest value relative to the mean; NaN for fewer than two, or if all are 0."""
    known = [value for value in values if not math.isnan(value)]
    mean = sum(known) / len(known) if known else 0.0
    return max(known) / mean if len(known) > 1 and mean > 0 else math.nan


def differences(facts: Mapping[int, EngineFacts]) -> dict[int, str]:
    """Return what is not as at most servers, by number; servers without a difference are left out.

    What is not known of a server, such as the version of one that only Prometheus can reach, is not different.
    """
    found: dict[int, list[str]] = {}
    for name in _COMPARED:
        values = {number: value for number, each in facts.items() if (value := getattr(each, name)) is not None}
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
