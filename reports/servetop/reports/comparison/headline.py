"""The result of a comparison in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.difference_texts import difference_text, interval_text
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import ComparedStage, RunPairsAdvice
from servetop.analysis.comparison.undecided import BLOCKED as BLOCKED_REASONS
from servetop.analysis.comparison.undecided_texts import cost_text, measured_text, stage_length_text
from servetop.analysis.comparison.verdicts import Verdict
from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.trust.steady_state import shows_trend
from servetop.core.text.counted import counted
from servetop.reports.comparison.headline_clauses import HEADLINE_CLAUSES, observed_of
from servetop.reports.comparison.run_pairs_advice import time_text

MIXED = "mixed"
_MOST_NAMED = 3
_MOST_SEEN = 2
_UNLIMITED = StageLoad(request_rate=math.inf).label


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    stage: ComparedStage
    value: MeasuredDifference

    @property
    def size(self) -> float:
        """The difference in margins."""
        return abs(self.value.difference or 0.0) / self.value.margin

    def may_be_called(self, verdict: Verdict) -> bool:
        """Whether this is the verdict, and what is known of the metric is enough for it."""
        return self.value.verdict == verdict and HEADLINE_CLAUSES[verdict].is_supported(self._known)

    @property
    def is_blocked(self) -> bool:
        """Whether the stages are too short or not steady, which leaves no verdict."""
        return self.value.reason in BLOCKED_REASONS and HEADLINE_CLAUSES["blocked"].is_supported(self._known)

    @property
    def has_cost(self) -> bool:
        """Whether it is known what would tell."""
        return HEADLINE_CLAUSES["cost"].is_supported(self._known)

    @property
    def _known(self) -> frozenset[Observation]:
        return observed_of(self.stage, self.value)


def overall_verdict(stages: Sequence[ComparedStage]) -> str:
    """Return the verdict of all metrics together: one of Verdict, or MIXED if some are better and others worse."""
    seen = {each.verdict for stage in stages for each in stage.metrics}
    if {Verdict.BETTER, Verdict.WORSE} <= seen:
        return MIXED
    order = (Verdict.WORSE, Verdict.BETTER, Verdict.NO_DIFFERENCE)
    return next((verdict for verdict in order if verdict in seen), Verdict.CANNOT_TELL)


def headline(letter: str, stages: Sequence[ComparedStage], advice: RunPairsAdvice | None = None) -> str:
    """Return the sentence: which metrics are worse or better and by how much, how many are not, and what would tell."""
    found = [_Found(stage=stage, value=value) for stage in stages for value in stage.metrics]
    by_verdict = {verdict: [each for each in found if each.may_be_called(verdict)] for verdict in Verdict}
    worse, better = by_verdict[Verdict.WORSE], by_verdict[Verdict.BETTER]
    noun = "metric" if len(stages) == 1 else "figure"
    parts = []
    if worse and better:
        parts.append(f"{letter} is worse in {_named(worse)}, but better in {_named(better)}")
    elif worse or better:
        parts.append(f"{letter} is {'worse' if worse else 'better'}: {_named(worse or better)}")
    if same := len(by_verdict[Verdict.NO_DIFFERENCE]):
        parts.append(f"no difference seen in {counted(same, noun)}")
    blocked = [each for each in by_verdict[Verdict.CANNOT_TELL] if each.is_blocked]
    if blocked:
        parts.append(_blocked_text(blocked, noun, alone=not parts, advice=advice))
    if unclear := [each for each in by_verdict[Verdict.CANNOT_TELL] if each not in blocked]:
        parts.append(_unclear_text(unclear, noun, alone=not parts, advice=advice))
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _named(found: Sequence[_Found], *, most: int = _MOST_NAMED) -> str:
    """Return the most telling metrics with their differences: the largest of each family, throughput first."""
    largest: dict[str, _Found] = {}
    for each in sorted(found, key=lambda each: -each.size):
        largest.setdefault(each.value.family, each)
    order = list(dict.fromkeys(each.value.family for each in found))
    chosen = [largest[family] for family in order[:most]]
    loads = {each.stage.label for each in chosen}
    texts = [_text(each, load="" if len(loads) == 1 else each.stage.label) for each in chosen]
    left = len(found) - len(chosen)
    return ", ".join(texts) + (_at(loads.pop()) if len(loads) == 1 else "") + (f" and {left} more" if left else "")


def _text(found: _Found, *, load: str) -> str:
    value = found.value
    return f"{value.title} {difference_text(value)} {interval_text(value)}{_at(load)}"


def _at(load: str) -> str:
    """Return a load at the end of a phrase; empty for none."""
    if load == _UNLIMITED or not load:
        return f" {load}".rstrip()
    return f" at {load.removeprefix(f'{_UNLIMITED} · ')}"


def _blocked_text(found: Sequence[_Found], noun: str, *, alone: bool, advice: RunPairsAdvice | None) -> str:
    """Return what lies in the stages: how short or unsteady they are, what was seen nevertheless, and what to do."""
    stages = list({each.stage.label: each.stage for each in found}.values())
    short = [each for each in stages if each.needed_seconds is not None]
    stage = min(short or stages, key=lambda each: min(each.seconds))
    if short:
        problem, reason = "too short to compare", f"{measured_text(stage.seconds, stage.requests)} of each"
    else:
        problem, reason = "not steady", stage.unsteady
    others = "" if alone else f" in the other {counted(len(found), noun)}"
    seen = f"; seen: {_seen(found)}" if alone and _seen(found) else ""
    return f"{problem}{others} ({reason}){seen}: {_remedy(short, advice)}"


def _remedy(short: Sequence[ComparedStage], advice: RunPairsAdvice | None) -> str:
    """Return what to measure next; `short` are the stages that are too short, the others are not steady."""
    ways = []
    lasting = [each for each in short if not shows_trend(each.unsteady)]
    if lasting and len(lasting) == len(short):
        needed = max(each.needed_seconds or 0.0 for each in lasting)
        ways.append(f"measure {stage_length_text(needed)} or more of each")
    ways += [f"alternate both with run-pairs ({time_text(advice)})"] if advice else []
    return ", or ".join(ways) or "measure a load at which it is"


def _seen(found: Sequence[_Found]) -> str:
    """Return the largest differences without a verdict, of those with a known interval first."""
    known = [each for each in found if interval_text(each.value).startswith("[")]
    return _named(known or [each for each in found if each.value.difference is not None], most=_MOST_SEEN)


def _unclear_text(found: Sequence[_Found], noun: str, *, alone: bool, advice: RunPairsAdvice | None) -> str:
    known = [each.value for each in found if each.has_cost and (each.value.more_starts or each.value.more_seconds)]
    beyond = [each.value.more_than for each in found if each.has_cost and each.value.more_than]
    starts = max((each.more_starts or 0 for each in known), default=0)
    seconds = max((each.more_seconds or 0.0 for each in known), default=0.0)
    costs = " or ".join(filter(None, (cost_text(starts=starts, seconds=None), cost_text(starts=None, seconds=seconds))))
    text = f"cannot tell in {counted(len(found), noun)}" if alone else f"undecided in {len(found)}"
    ways = [f"{costs} of each would decide {_which(len(known), len(found))}"] if costs else []
    if beyond:
        time = f" ({time_text(advice)})" if advice else ""
        least = " or ".join(dict.fromkeys(beyond))
        ways.append(f"more than {least} of each would decide {_which(len(beyond), len(found))}: use run-pairs{time}")
    return ": ".join(filter(None, (text, ", ".join(ways))))


def _which(known: int, count: int) -> str:
    if known < count:
        return f"{known} of them"
    return "all of them" if count > 1 else "it"
