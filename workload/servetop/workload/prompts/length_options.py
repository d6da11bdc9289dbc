"""Refuses lengths that are given twice, or that the dataset does not use: one of the two would be ignored."""

from __future__ import annotations

from collections.abc import Iterator

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.prompts.lengths import parse_lengths

_DEFAULT = WorkloadConfig()
_INSTEAD = {
    "fixed": ("{side}",),
    "normal": ("{side}_mean", "{side}_max"),
    "lognormal": ("{side}_mean",),
    "capped-exponential": ("{side}_mean",),
    "zipf": ("{side}_cap",),
}
"""Parameters of `--lengths` that take the place of `--input-len` and `--output-len`."""


def check_length_options(workload: WorkloadConfig) -> None:
    """Raise UsageError for the first length that another option overrides."""
    wrong = next(_overridden(workload), None)
    if wrong is not None:
        raise UsageError(wrong)


def _overridden(workload: WorkloadConfig) -> Iterator[str]:
    """Yield what to do about each length that has no effect."""
    if not workload.lengths:
        return
    name, given = parse_lengths(workload).name, given_parameters(workload.lengths)
    for side in ("input", "output"):
        length, option = getattr(workload, f"{side}_len"), f"--{side}-len"
        if length == getattr(_DEFAULT, f"{side}_len"):
            continue
        instead = [each.format(side=side) for each in _INSTEAD.get(name, ())]
        if name == "sharegpt":
            yield f"{option}: --lengths sharegpt has lengths of its own: leave out one of the two"
        elif set_twice := [each for each in instead if each in given]:
            yield f"{option} {length}: --lengths sets it too, by {set_twice[0]}: leave out one of the two"
    if workload.range_ratio and "ratio" in given:
        yield "--random-range-ratio: --lengths sets it too, by ratio: leave out one of the two"
    if "input_max" in given and (ignored := given & {"input_mean", "input_std", "input_cap"}):
        yield f"--lengths: input_max takes the place of {', '.join(sorted(ignored))}: leave out one of the two"


def given_parameters(text: str) -> frozenset[str]:
    """Return the parameters that a spec names, as `input_mean` in `normal:input_mean=9`."""
    return frozenset(part.partition("=")[0].strip() for part in text.partition(":")[2].split(",")) - {""}
