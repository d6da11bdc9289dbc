"""The steps that are computed rather than estimated: how the tools define a figure, and over which part of a run."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.analysis.reconciliation.definitions import COMMON, ReconciledMetric, definition_of
from servetop.analysis.reconciliation.steady_part import SteadyPart
from servetop.analysis.reconciliation.waterfall import DifferenceStep, ReconciledRun, StepKind, scale_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedFigure:
    """A figure of one run, in the unit of its metric; NaN is unknown."""

    reported: float
    """As the tool wrote it, else by its definition."""
    own: float
    """By the tool's definition, from its requests."""
    common: float
    """By servetop's definition, from the same requests."""
    text: str
    written: bool
    """Whether the tool's file has the figure."""

    @property
    def unreproduced(self) -> float:
        """What the tool wrote less what follows from its requests by its definition."""
        return self.reported - self.own


def defined_figure(run: ReconciledRun, metric: ReconciledMetric) -> DefinedFigure:
    """Return a figure of a run as its tool reports it, and by the definitions of its tool and of servetop."""
    own, scale = definition_of(run.tool, metric), scale_of(metric)
    computed = own.compute(run.rows) * scale
    written = run.reported.get(metric)
    return DefinedFigure(
        reported=computed if written is None else written,
        own=computed,
        common=COMMON[metric].compute(run.rows) * scale,
        text=own.text,
        written=written is not None,
    )


def definition_step(a: DefinedFigure, b: DefinedFigure) -> DifferenceStep:
    """Return the difference that the definitions make, each on its own requests."""
    text = f"both: {a.text}" if a.text == b.text else f"A: {a.text}; B: {b.text}"
    effect = (b.own - b.common) - (a.own - a.common)
    return DifferenceStep(kind=StepKind.DEFINITION, effect=effect, evidence=text)


def window_step(
    runs: tuple[ReconciledRun, ReconciledRun],
    parts: tuple[SteadyPart, SteadyPart],
    *,
    whole: tuple[float, float],
    within: tuple[float, float],
) -> DifferenceStep:
    """Return the difference that the beginnings and ends of the runs make, from figures of whole runs and windows."""
    if any(each.whole for each in parts):
        return DifferenceStep(kind=StepKind.WINDOW, effect=None, evidence=_without_window(runs))
    texts = []
    for name, run, part in zip("AB", runs, parts, strict=True):
        kept = int((part.sent_within(run.rows) & run.rows.ok).sum())
        texts.append(f"{kept:,} of {run.rows.sent.size:,} requests of {name}")
    effect = (whole[1] - within[1]) - (whole[0] - within[0])
    return DifferenceStep(kind=StepKind.WINDOW, effect=effect, evidence=f"sent under steady load: {', '.join(texts)}")


def _without_window(runs: tuple[ReconciledRun, ReconciledRun]) -> str:
    for name, run in zip("AB", runs, strict=True):
        if not run.rows.times_known:
            return f"the file of {name} does not have the times at which requests were sent"
    return "too few requests were sent after the first ones had ended: whole runs are compared"
