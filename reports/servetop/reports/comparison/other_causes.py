"""Other causes than the change under test, from the measured conditions of each pair of recordings."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.comparison.measured_difference import named
from servetop.analysis.comparison.report_types import OtherCause
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.confounding.confounder import Confounder, ConfounderKind
from servetop.analysis.confounding.confounders import confounders
from servetop.analysis.confounding.load_rule import load_confounder
from servetop.reports.comparison.measured_arm import MeasuredArm, MeasuredRun


def other_causes(a: MeasuredArm, b: MeasuredArm) -> tuple[OtherCause, ...]:
    """Return the causes found in any pair of recordings, each with the text of the first pair that has it."""
    pairs = paired_runs(a, b)
    texts: dict[ConfounderKind, list[Confounder]] = {}
    for first, second in pairs:
        for each in causes_in_pair(first, second):
            texts.setdefault(each.kind, []).append(each)
    return tuple(
        OtherCause(
            kind=str(kind),
            text=named(found[0].text, a="A", b=b.letter),
            metrics=found[0].metrics,
            severity=found[0].severity.name.lower(),
            pairs=len(found),
            of_pairs=len(pairs),
        )
        for kind, found in texts.items()
    )


def paired_runs(a: MeasuredArm, b: MeasuredArm) -> list[tuple[MeasuredRun, MeasuredRun]]:
    """Return pairs of recordings: those with equal seeds if each has such a partner, else in the given order."""
    by_seed = {run.header.config.seed: run for run in b.runs}
    seeds = {run.header.config.seed for run in a.runs}
    if len(seeds) == len(a.runs) and len(by_seed) == len(b.runs) and seeds == set(by_seed):
        return [(run, by_seed[run.header.config.seed]) for run in a.runs]
    return list(zip(a.runs, b.runs, strict=False))


def causes_in_pair(a: MeasuredRun, b: MeasuredRun) -> Sequence[Confounder]:
    """Return the confounders of two runs, or of their common stages if they have others besides; one of each kind."""
    common = _common_stages(a, b)
    loads = [[stage.load for stage in run.arm.stages] for run in (a, b)]
    whole = all(run.conditions.stages.keys() <= {stage.index for stage in run.arm.stages} for run in (a, b))
    found: dict[ConfounderKind, Confounder] = {}
    if whole and loads[0] == loads[1]:
        found = {each.kind: each for each in confounders(a.conditions, b.conditions)}
    else:
        for first, second in common:
            for each in confounders(a.conditions.stages[first.index], b.conditions.stages[second.index]):
                found.setdefault(each.kind, each)
    for first, second in common:  # lengths that differ beyond chance explain the tokens
        tokens = ConfounderKind.LENGTHS not in found
        load = load_confounder(first, second, tokens=tokens)
        if load is not None:
            found.setdefault(load.kind, load)
    return tuple(found.values())


def _common_stages(a: MeasuredRun, b: MeasuredRun) -> list[tuple[StageSample, StageSample]]:
    """Return the stages of A whose load B has too, each with the first such stage of B."""
    others = {stage.load: stage for stage in reversed(b.arm.stages)}
    return [(stage, others[stage.load]) for stage in a.arm.stages if stage.load in others]
