"""What makes two configurations incomparable, and what to know before their figures are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from servetop.analysis.comparison.report_types import ComparedStage
from servetop.analysis.comparison.slices import MIN_PER_SLICE
from servetop.analysis.manifest.manifest_diff import DifferenceKind, ManifestDifference, manifest_differences
from servetop.analysis.statistics.batch_means import SERIES
from servetop.core.errors import UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.text.counted import counted
from servetop.reports.comparison.measured_arm import MeasuredArm, MeasuredRun

MIN_REQUESTS = min(SERIES) * MIN_PER_SLICE
"""Requests of a stage below which it is not divided into slices, so that nothing is known about its error."""
_MOST_LISTED = 4


def unlike_keys(differences: Iterable[ManifestDifference]) -> tuple[ManifestDifference, ...]:
    """Return the first difference of each key in which the workload of a recording differs from that of another."""
    found: dict[str, ManifestDifference] = {}
    for each in differences:
        if each.is_unlike:
            found.setdefault(each.key, each)
    return tuple(found.values())


def check_same_workload(a: Sequence[RunHeader], others: Mapping[str, Sequence[RunHeader]]) -> None:
    """Raise UsageError if the workload of A differs from that of another configuration, by its letter."""
    for letter, headers in others.items():
        if found := unlike_keys(each for header in (*a[1:], *headers) for each in manifest_differences(a[0], header)):
            raise UsageError(f"{_unlike_text(found, letter)}: compare equal workloads, or give --anyway")


def _unlike_text(found: Sequence[ManifestDifference], letter: str) -> str:
    first = found[0]
    rest = [each.key for each in found[1:]]
    more = f" ({_listed(rest)} differ{'s' if len(rest) == 1 else ''} too)" if rest else ""
    return f"A and {letter} have different workloads: {first.key} is {first.a} and {first.b}{more}"


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_MOST_LISTED]) + (" …" if len(keys) > _MOST_LISTED else "")


def check_measured(arm: MeasuredArm) -> None:
    """Raise UsageError if a recording has no successful request to compare."""
    for run in arm.runs:
        if not run.conditions.requests:
            raise UsageError(f"{run.path} has no finished request: there is nothing to compare")
        if not run.conditions.completed:
            requests = counted(run.conditions.requests, "request")
            raise UsageError(f"{run.path}: none of its {requests} succeeded: servetop summary shows the reasons")


def check_stages(stages: Sequence[ComparedStage], a: MeasuredArm, b: MeasuredArm) -> None:
    """Raise UsageError if no load is common to both, or no common stage has enough requests."""
    if not stages:
        loads = (f"{arm.letter} has {', '.join(_loads(arm)) or 'no stage'}" for arm in (a, b))
        raise UsageError(f"no load in common: {'; '.join(loads)}: compare runs with equal stages")
    if not any(stage.metrics for stage in stages):
        raise UsageError(f"too few requests in every common stage: a comparison needs {MIN_REQUESTS} in one of them")


def _loads(arm: MeasuredArm) -> list[str]:
    return list(dict.fromkeys(stage.load.label for run in arm.runs for stage in run.arm.stages))


def warnings_of(a: MeasuredArm, b: MeasuredArm, differences: Sequence[ManifestDifference]) -> tuple[str, ...]:
    """Return what limits the comparison, one sentence each; `differences` are those of the first recordings."""
    unlike = unlike_keys((*_from_first(a, a.runs[1:]), *differences, *_from_first(a, b.runs[1:])))
    return (
        *([f"{_unlike_text(unlike, b.letter)}; the figures below include that"] if unlike else ()),
        *(text for arm in (a, b) for run in arm.runs for text in _run_warnings(arm, run)),
        *(text for arm in (a, b) for text in _mixture_warnings(arm)),
        *_objective_warnings(a, b),
    )


def _from_first(arm: MeasuredArm, runs: Sequence[MeasuredRun]) -> Iterator[ManifestDifference]:
    """Yield the differences between the first recording of a configuration and others."""
    for run in runs:
        yield from manifest_differences(arm.first.header, run.header)


def _run_warnings(arm: MeasuredArm, run: MeasuredRun) -> Iterator[str]:
    if run.damage is not None:
        yield run.damage
    if run.running:
        yield f"{arm.letter} ({run.name}) is still running: what it has measured so far is compared"
    elif run.end is None:
        yield f"{arm.letter} ({run.name}) ended without notice: what was recorded is compared"
    if run.conditions.failed:
        failed = f"{run.conditions.failed:,} of {counted(run.conditions.requests, 'request')} failed"
        yield f"{arm.letter} ({run.name}): {failed}; latencies omit them"


def _mixture_warnings(arm: MeasuredArm) -> Iterator[str]:
    differences = _from_first(arm, arm.runs[1:])
    keys = {each.key for each in differences if each.kind is DifferenceKind.SETTING and not each.unknown}
    if keys:
        verb = "differs" if len(keys) == 1 else "differ"
        yield f"the recordings of {arm.letter} are not of one configuration: {_listed(sorted(keys))} {verb}"


def _objective_warnings(a: MeasuredArm, b: MeasuredArm) -> Iterator[str]:
    goodputs = [run.header.config.goodput for arm in (a, b) for run in arm.runs]
    if any(each != goodputs[0] for each in goodputs[1:]):
        yield "the runs have different objectives: goodput is computed with those of the first run that has any"
