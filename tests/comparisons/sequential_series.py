"""Judges the sequential test of pairs: drawn differences, and whole series of simulated runs."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.compared_metrics import Scale, metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.paired_runs import PairedMetric, compare_pairs
from servetop.analysis.comparison.sequential import (
    DifferenceLimits,
    evidence,
    looks,
    mean_and_error,
    pairs_needed,
    sequential_verdicts,
)
from servetop.analysis.comparison.verdicts import Verdict
from tests.comparisons.drawn_runs import draw_load, measured
from tests.comparisons.same_engine import draws

MARGIN = 1.0
LIMITS = DifferenceLimits.of(MARGIN, Scale.ABSOLUTE)
TRUTHS = (0.0, 0.5, 1.0)
"""True differences in margins."""
_SPREADS = (0.1, 0.6)
"""Standard deviations of the differences are drawn between these, in margins."""
_FIRST_PAIRS = 4
"""Pairs from which the cost is estimated."""


def _normal(random: Random, number: int) -> float:
    del number
    return random.gauss(0.0, 1.0)


def _heavy_tailed(random: Random, number: int) -> float:
    """Student's t with 3 degrees of freedom, scaled to a standard deviation of 1."""
    del number
    square = sum(random.gauss(0.0, 1.0) ** 2 for _ in range(3)) / 3
    return random.gauss(0.0, 1.0) / math.sqrt(square) / math.sqrt(3)


def _drifting(random: Random, number: int) -> float:
    """The second run of each pair is slower than the first by half a standard deviation; ABBA changes its sign."""
    return random.gauss(0.0, 1.0) + (0.5 if number % 2 else -0.5)


NOISES: Mapping[str, Callable[[Random, int], float]] = {
    "normal": _normal,
    "heavy-tailed (t, 3 df)": _heavy_tailed,
    "drifting": _drifting,
}


@dataclass(kw_only=True)
class SeriesAnswers:
    """What series of one kind ended with."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    wrong: int = 0
    """Series with a wrong verdict on any metric."""
    pairs: list[int] = field(default_factory=list)
    """Pairs until the answer, or until the cost was paid."""
    estimated_paid: int = 0
    """Series that were answered by the time that the cost which was printed after four pairs was paid."""

    @property
    def count(self) -> int:
        """Series."""
        return len(self.pairs)


def drawn_series(noise: str, truth: float, *, seed: int, count: int) -> SeriesAnswers:
    """Judge drawn differences up to the number of pairs that their spread needs."""
    answers = SeriesAnswers()
    wrong = {0.0: (Verdict.BETTER, Verdict.WORSE), 0.5: (Verdict.BETTER, Verdict.WORSE)}
    mistakes = wrong.get(truth, (Verdict.NO_DIFFERENCE, Verdict.WORSE))
    for random in draws(seed, f"{noise}/{truth}", count):
        spread = random.uniform(*_SPREADS)
        paid = pairs_needed(spread, MARGIN / 2)
        assert paid is not None
        differences = [truth + spread * NOISES[noise](random, number) for number in range(4 * paid)]
        answered = next(
            (look for look in looks(4 * paid) if _verdict(differences[:look]) is not Verdict.CANNOT_TELL), 0
        )
        found = _verdict(differences[:answered]) if 0 < answered <= paid else Verdict.CANNOT_TELL
        answers.verdicts[found] += 1
        answers.wrong += found in mistakes
        answers.pairs.append(answered if 0 < answered <= paid else paid)
        answers.estimated_paid += 0 < answered <= max(_estimated(differences[:_FIRST_PAIRS]), _FIRST_PAIRS)
    return answers


def _verdict(differences: Sequence[float]) -> Verdict:
    return sequential_verdicts([evidence(differences, LIMITS)], higher_is_better=[True])[0]


def _estimated(differences: Sequence[float]) -> int:
    """The pairs needed as estimated from the first ones."""
    _, error = mean_and_error(differences)
    spread = error * math.sqrt(len(differences))
    return pairs_needed(spread, MARGIN / 2, measured=len(differences)) or 0


METRICS = ("output_throughput", "p50_ttft_ms", "mean_tpot_ms")
SPREAD_OF_STARTS = 0.003
"""Standard deviation of the speed between the starts of a series, as a fraction."""
_MOST_PAIRS = 16


def simulated_series(slower: float, *, seed: int, count: int) -> SeriesAnswers:
    """Measure whole series of a closed loop, B slower by a factor; `verdicts` are those on the throughput."""
    answers = SeriesAnswers()
    for random in draws(seed, f"series {slower}", count):
        found, pairs = _measure_series(random, slower=slower)
        answers.verdicts[found[0].verdict] += 1
        answers.wrong += any(_is_wrong(each, slower=slower) for each in found)
        answers.pairs.append(pairs)
    return answers


def _measure_series(random: Random, *, slower: float) -> tuple[tuple[PairedMetric, ...], int]:
    load = draw_load(random, closed=True)
    seconds = (load.stage.duration or 0.0) / 2
    metrics = [metric for key in METRICS if (metric := metric_named(key)) is not None]
    a: list[ArmRun] = []
    b: list[ArmRun] = []
    for look in looks(_MOST_PAIRS):
        for number in range(len(a), look):
            effects = [math.exp(random.gauss(0.0, SPREAD_OF_STARTS)) for _ in "ab"]
            plans = (
                load.plan(number, slower=effects[0], seconds=seconds),
                load.plan(number, slower=effects[1] * slower, seconds=seconds),
            )
            a.append(measured(plans[0], f"a{number}"))
            b.append(measured(plans[1], f"b{number}"))
        found = compare_pairs(a, b, ComparisonOptions(metrics=metrics))
        if all(each.verdict is not Verdict.CANNOT_TELL for each in found):
            break
    return found, len(a)


def _is_wrong(each: PairedMetric, *, slower: float) -> bool:
    """Whether a verdict contradicts the planted slowdown, which all metrics of a saturated engine share."""
    if slower == 1:
        return each.verdict in (Verdict.BETTER, Verdict.WORSE)
    missed = each.verdict is Verdict.NO_DIFFERENCE and each.metric.key == "output_throughput"
    return missed or each.verdict is Verdict.BETTER


def sequential_tables(*, seed: int, drawn: int = 10_000, series: int = 200) -> list[str]:
    """Judge all kinds of series; return tables in Markdown."""
    lines = [
        "| differences | true difference, margins | series | wrong | answered at the cost | at the cost printed after "
        f"{_FIRST_PAIRS} pairs | mean pairs |",
        "|---|---|---|---|---|---|---|",
    ]
    for noise in NOISES:
        for truth in TRUTHS:
            each = drawn_series(noise, truth, seed=seed, count=drawn)
            answered = each.count - each.verdicts[Verdict.CANNOT_TELL]
            shares = (each.wrong, answered, each.estimated_paid)
            texts = " | ".join(f"{share / each.count:.1%}" for share in shares)
            lines.append(f"| {noise} | {truth:g} | {each.count:,} | {texts} | {statistics.mean(each.pairs):.1f} |")
    lines += [
        "",
        "| simulated engines | series | wrong | throughput: worse | no difference seen | better | cannot tell | "
        "median pairs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, slower in (("equal", 1.0), ("B slower by 2 %", 1.02)):
        each = simulated_series(slower, seed=seed, count=series)
        order = (Verdict.WORSE, Verdict.NO_DIFFERENCE, Verdict.BETTER, Verdict.CANNOT_TELL)
        texts = " | ".join(f"{share / each.count:.1%}" for share in (each.wrong, *(each.verdicts[v] for v in order)))
        lines.append(f"| {name} | {each.count} | {texts} | {statistics.median(each.pairs):g} |")
    return lines
