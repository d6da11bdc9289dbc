"""The steps between the throughputs of two runs.

At a rate, what completes is what was sent, and what was in flight when the window began and was not when it ended. As
far as requests in flight vary by chance, that is the window's; a server that does not keep up has more of them at the
end than chance explains. In a closed loop it follows from Little's law: throughput = requests in
flight / (E2EL + pause of the client between two requests), so the steps of the mean E2EL carry over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.analysis.reconciliation.defined_steps import defined_figure, definition_step, window_step
from servetop.analysis.reconciliation.definitions import ReconciledMetric, mean_of
from servetop.analysis.reconciliation.estimated_steps import unexplained_step
from servetop.analysis.reconciliation.load_terms import in_flight_at
from servetop.analysis.reconciliation.steady_part import SteadyPart
from servetop.analysis.reconciliation.waterfall import (
    DifferenceStep,
    DifferenceWaterfall,
    Runs,
    StepKind,
    waterfall_of,
)
from servetop.core.units import MS_PER_S

_TWO_SIDED_95 = 1.96
Parts = tuple[SteadyPart, SteadyPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRates:
    """The rates of one run within its window, per second, and what they follow from."""

    completed: float
    sent: float
    """Requests sent, less those that failed within the window."""
    at_start: int
    """Requests in flight when the window began."""
    at_end: int
    """Requests in flight when it ended."""
    tokens: float
    """Mean output tokens of a request that completed."""
    in_flight: float
    """Mean requests in flight."""
    e2el: float
    """Mean E2EL of the completed requests, seconds."""
    error: float
    """Half of the 95 % interval of `drained`: how much requests in flight vary from moment to moment."""

    @property
    def drained(self) -> float:
        """`completed` less `sent`: positive if fewer requests are in flight at the end of the window than before."""
        return self.completed - self.sent

    @property
    def pause(self) -> float:
        """Seconds between the end of a request and the next one in its place, in a closed loop."""
        return self.in_flight / self.completed - self.e2el


def window_rates(rows: ClientRows, part: SteadyPart, *, concurrency: int | None) -> WindowRates:
    """Return the rates of a run within a window; `concurrency` replaces the requests in flight if it is known."""
    start, end = (part.start, part.end) if not part.whole else (float(rows.sent.min()), float(rows.ended.max()))
    seconds = max(end - start, 1e-9)
    sent, over = part.sent_within(rows), part.ended_within(rows)
    ended = over & rows.ok
    at_start = int(np.count_nonzero((rows.sent < start) & (rows.ended >= start)))
    spread = float(np.std(in_flight_at(rows.sent, rows.ended)[sent])) * math.sqrt(2) / seconds
    busy = np.clip(rows.ended, start, end) - np.clip(rows.sent, start, end)
    measured = float(busy.sum()) / seconds
    return WindowRates(
        completed=float(ended.sum()) / seconds,
        sent=float(sent.sum() - (over & ~rows.ok).sum()) / seconds,
        at_start=at_start,
        at_end=at_start + int(sent.sum()) - int(over.sum()),
        tokens=mean_of(rows.output[ended]),
        in_flight=measured if concurrency is None else float(concurrency),
        e2el=mean_of(rows.e2el[sent & rows.ok]),
        error=_TWO_SIDED_95 * spread,
    )


def throughput_waterfall(
    metric: ReconciledMetric, runs: Runs, parts: Parts, latency: DifferenceWaterfall | None
) -> DifferenceWaterfall | None:
    """Return the steps between two throughputs, with the steps of the mean E2EL; None if one of them is unknown."""
    figures = (defined_figure(runs[0], metric), defined_figure(runs[1], metric))
    if not all(math.isfinite(each.reported) and math.isfinite(each.common) for each in figures):
        return None
    a, b = (
        window_rates(run.rows, part, concurrency=run.concurrency if run.closed else None)
        for run, part in zip(runs, parts, strict=True)
    )
    if not all(each.completed > 0 and each.sent > 0 for each in (a, b)):
        return None
    tokens = metric is ReconciledMetric.OUTPUT_THROUGHPUT
    scales = (a.tokens, b.tokens) if tokens else (1.0, 1.0)
    steps = [definition_step(*figures)]
    steps.append(
        window_step(
            runs,
            parts,
            whole=(figures[0].common, figures[1].common),
            within=(a.completed * scales[0], b.completed * scales[1]),
        )
    )
    closed = all(each.closed for each in runs)
    middle = (scales[0] + scales[1]) / 2
    lengths = (a.completed + b.completed) / 2 * (scales[1] - scales[0])
    steps += _closed(a, b, latency, middle, lengths) if closed else _open(a, b, middle, lengths)
    spread = math.hypot(a.error, b.error) * middle if not closed else _carried(latency, a, b, middle)
    if not closed and abs(b.drained - a.drained) * middle <= spread:
        steps[1] = _with_drained(steps[1], a, b, middle)
    explained = sum(each.effect or 0.0 for each in steps)
    rest = figures[1].reported - figures[0].reported - explained
    steps.append(unexplained_step(rest, spread=spread, figures=figures))
    return waterfall_of(metric, steps, a=figures[0].reported, b=figures[1].reported)


def _open(a: WindowRates, b: WindowRates, middle: float, lengths: float) -> Sequence[DifferenceStep]:
    """Return the steps of clients that send at a rate; `middle` output tokens, or 1, count for each request."""
    return (
        DifferenceStep(
            kind=StepKind.LOAD,
            effect=(b.sent - a.sent) * middle,
            evidence=f"requests sent per second: {a.sent:.4g} in A, {b.sent:.4g} in B",
        ),
        _lengths_step(a, b, lengths),
    )


def _with_drained(window: DifferenceStep, a: WindowRates, b: WindowRates, middle: float) -> DifferenceStep:
    """Return the step of the windows, plus the effect of the requests in flight at their starts and ends."""
    if window.effect is None:  # whole runs: none was in flight
        return window
    text = f"in flight at its start and end: {a.at_start:,} and {a.at_end:,} in A, {b.at_start:,} and {b.at_end:,} in B"
    effect = window.effect + (b.drained - a.drained) * middle
    return DifferenceStep(kind=window.kind, effect=effect, evidence=f"{window.evidence}; {text}")


def _closed(
    a: WindowRates, b: WindowRates, latency: DifferenceWaterfall | None, middle: float, lengths: float
) -> Sequence[DifferenceStep]:
    """Return the steps of closed loops by Little's law, one after another from A's state to B's."""
    cycle, loops = a.e2el + a.pause, b.in_flight
    steps = [
        DifferenceStep(
            kind=StepKind.LOAD,
            effect=(b.in_flight - a.in_flight) / cycle * middle,
            evidence=f"requests in flight: {a.in_flight:.4g} in A, {b.in_flight:.4g} in B",
        )
    ]
    added = {each.kind: each for each in latency.steps} if latency is not None else {}
    for kind in (StepKind.LOAD, StepKind.WORKLOAD, StepKind.CACHE, StepKind.CLIENT):
        step = added.get(kind)
        seconds = 0.0 if step is None or step.effect is None else step.effect / MS_PER_S
        pause = b.pause - a.pause if kind is StepKind.CLIENT else 0.0
        effect = loops * (1 / (cycle + seconds + pause) - 1 / cycle) * middle
        cycle += seconds + pause
        steps.append(_closed_step(kind, step, effect, (a, b), lengths))
    merged = steps[0].effect or 0.0, steps[1].effect or 0.0
    first = DifferenceStep(kind=StepKind.LOAD, effect=sum(merged), evidence=steps[0].evidence)
    return (first, *steps[2:])


def _closed_step(
    kind: StepKind,
    step: DifferenceStep | None,
    effect: float,
    rates: tuple[WindowRates, WindowRates],
    lengths: float,
) -> DifferenceStep:
    a, b = rates
    unknown = step is None or step.effect is None
    reason = "the steps of the mean E2EL are not known" if step is None else step.evidence
    if kind is StepKind.CLIENT:
        text = (
            f"pause between two requests of a slot: {a.pause * MS_PER_S:.3g} ms in A, {b.pause * MS_PER_S:.3g} ms in B"
        )
        return DifferenceStep(kind=kind, effect=effect, evidence=text)
    if kind is StepKind.WORKLOAD:
        found = _lengths_step(a, b, lengths)
        return DifferenceStep(kind=kind, effect=effect + lengths, evidence=found.evidence)
    return DifferenceStep(kind=kind, effect=None if unknown else effect, evidence=f"by the mean E2EL: {reason}")


def _lengths_step(a: WindowRates, b: WindowRates, lengths: float) -> DifferenceStep:
    return DifferenceStep(
        kind=StepKind.WORKLOAD,
        effect=lengths,
        evidence=f"output tokens of a request: {a.tokens:,.1f} in A, {b.tokens:,.1f} in B",
    )


def _carried(latency: DifferenceWaterfall | None, a: WindowRates, b: WindowRates, middle: float) -> float:
    """Return half of the interval of what is unexplained of the mean E2EL, as throughput; NaN if it has none."""
    last = None if latency is None else latency.steps[-1]
    if last is None or last.low is None or last.high is None:
        return math.nan
    seconds = (last.high - last.low) / 2 / MS_PER_S
    cycle = (a.e2el + a.pause + b.e2el + b.pause) / 2
    return (a.completed + b.completed) / 2 * middle * seconds / cycle
