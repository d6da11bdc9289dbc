"""The result of a comparison in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.verdicts import Verdict
from servetop.analysis.comparison_report.difference_texts import cost_text, difference_text, interval_text
from servetop.analysis.comparison_report.report_types import ComparedStage, ComparedValue

MIXED = "mixed"
_MOST_NAMED = 3
_UNLIMITED = StageLoad(request_rate=math.inf).label


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    stage: ComparedStage
    value: ComparedValue

    @property
    def size(self) -> float:
        """The difference in margins."""
        return abs(self.value.difference or 0.0) / self.value.margin


def overall_verdict(stages: Sequence[ComparedStage]) -> str:
    """Return the verdict of all metrics together: one of Verdict, or MIXED if some are better and others worse."""
    seen = {each.verdict for stage in stages for each in stage.metrics}
    if {Verdict.BETTER, Verdict.WORSE} <= seen:
        return MIXED
    order = (Verdict.WORSE, Verdict.BETTER, Verdict.NO_DIFFERENCE)
    return next((verdict for verdict in order if verdict in seen), Verdict.CANNOT_TELL)


def headline(letter: str, stages: Sequence[ComparedStage]) -> str:
    """Return the sentence: which metrics are worse or better and by how much, how many are not, and what would tell."""
    found = [_Found(stage=stage, value=value) for stage in stages for value in stage.metrics]
    by_verdict = {verdict: [each for each in found if each.value.verdict == verdict] for verdict in Verdict}
    worse, better = by_verdict[Verdict.WORSE], by_verdict[Verdict.BETTER]
    noun = "metric" if len(stages) == 1 else "figure"
    parts = []
    if worse and better:
        parts.append(f"{letter} is worse in {_named(worse)}, but better in {_named(better)}")
    elif worse or better:
        parts.append(f"{letter} is {'worse' if worse else 'better'}: {_named(worse or better)}")
    if same := len(by_verdict[Verdict.NO_DIFFERENCE]):
        parts.append(f"no difference seen in {_counted(same, noun)}")
    if unclear := by_verdict[Verdict.CANNOT_TELL]:
        parts.append(_unclear_text(unclear, noun, alone=not parts))
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _named(found: Sequence[_Found]) -> str:
    """The most telling metrics with their differences: the largest of each family, throughput first."""
    largest: dict[str, _Found] = {}
    for each in sorted(found, key=lambda each: -each.size):
        largest.setdefault(each.value.family, each)
    order = list(dict.fromkeys(each.value.family for each in found))
    chosen = [largest[family] for family in order[:_MOST_NAMED]]
    loads = {each.stage.label for each in chosen}
    texts = [_text(each, load="" if len(loads) == 1 else each.stage.label) for each in chosen]
    left = len(found) - len(chosen)
    return ", ".join(texts) + (_at(loads.pop()) if len(loads) == 1 else "") + (f" and {left} more" if left else "")


def _text(found: _Found, *, load: str) -> str:
    value = found.value
    return f"{value.title} {difference_text(value)} {interval_text(value)}{_at(load)}"


def _at(load: str) -> str:
    """A load at the end of a phrase; empty for none."""
    if load == _UNLIMITED or not load:
        return f" {load}".rstrip()
    return f" at {load.removeprefix(f'{_UNLIMITED} · ')}"


def _unclear_text(found: Sequence[_Found], noun: str, *, alone: bool) -> str:
    known = [each.value for each in found if each.value.more_starts or each.value.more_seconds]
    starts = max((each.more_starts or 0 for each in known), default=0)
    seconds = max((each.more_seconds or 0.0 for each in known), default=0.0)
    costs = " or ".join(filter(None, (cost_text(starts=starts, seconds=None), cost_text(starts=None, seconds=seconds))))
    text = f"cannot tell in {_counted(len(found), noun)}" if alone else f"undecided in {len(found)}"
    return f"{text}: {costs} of each would decide {_which(len(known), len(found))}" if costs else text


def _which(known: int, count: int) -> str:
    if known < count:
        return f"{known} of them"
    return "all of them" if count > 1 else "it"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
