"""Factors of the intervals of estimated rates, and how often such intervals contain the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.diagnosis.rate_interval import Factors, scaled, within

TAIL = 0.05
"""Fraction of the truths that may lie below an interval, and above it."""
FEWEST = 20
"""Runs from which a kind of evidence has factors; with fewer the most extreme ratio is no quantile."""
RATES = ("sustainable", "knee")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateError:
    """What a run claims of its engine, and the truth; requests/s, None if not claimed."""

    seed: int
    kind: str
    number: int
    engine: str
    """Identifies the simulated engine, workload and objective that the truth belongs to."""
    limit: str
    """The verdict of the run."""
    evidence: str
    """How much its overload tells, which decides the factors."""
    claimed: tuple[float | None, float | None]
    """Sustainable rate and knee."""
    true: tuple[float, float]
    kept: float | None
    """The highest rate that the run kept."""
    missed: float | None
    """The constant rate at which its overload began."""

    def ratio(self, rate: str) -> float | None:
        """Truth / estimate of one of RATES; None without an estimate."""
        place = RATES.index(rate)
        estimate = self.claimed[place]
        return self.true[place] / estimate if estimate else None

    def covered(self, rate: str, factors: Factors) -> bool | None:
        """Whether the interval that the run gets contains the truth; None without an estimate."""
        place = RATES.index(rate)
        estimate = self.claimed[place]
        if not estimate:
            return None
        missed = self.missed if rate == "sustainable" else None
        ends = within(scaled(estimate, factors), estimate, self.kept, missed)
        return ends is not None and ends[0] <= self.true[place] <= ends[1]


def conformal(ratios: Sequence[float]) -> Factors:
    """Return the factors between which the next of exchangeable ratios lies with a probability of 1 - 2·TAIL or more.

    They are order statistics of n ratios, the ⌈(n+1)·(1-TAIL)⌉-th and its mirror image (split conformal prediction;
    Lei et al., "Distribution-Free Predictive Inference for Regression", 2018), rounded outwards to hundredths.
    ValueError with too few.
    """
    place = math.floor((len(ratios) + 1) * TAIL + 1e-9)
    if place < 1:
        raise ValueError(f"{len(ratios)} ratios have no quantile of {TAIL:.0%}")
    ordered = sorted(ratios)
    low, high = ordered[place - 1], ordered[-place]
    return min(math.floor(100 * low + 1e-9) / 100, 1.0), max(math.ceil(100 * high - 1e-9) / 100, 1.0)


def factors_of(errors: Iterable[RateError], rate: str, kinds: Iterable[str]) -> dict[str, Factors]:
    """Return the factors of each kind of evidence; none of one with fewer than FEWEST runs."""
    known = [(each.evidence, ratio) for each in errors if (ratio := each.ratio(rate)) is not None]
    found = {kind: [ratio for of, ratio in known if of == kind] for kind in kinds}
    return {str(kind): conformal(ratios) for kind, ratios in found.items() if len(ratios) >= FEWEST}


def factors_module(factors: Mapping[str, Mapping[str, Factors]]) -> str:
    """The text of `analysis/diagnosis/rate_factors.py`: the factors by evidence, for each of RATES."""
    lines = [
        '"""What estimated rates are multiplied with for an interval of 90 %, by the evidence.',
        "",
        "Written by `make judge-rates` from runs whose truth is known: do not edit.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "",
        "from servetop.analysis.diagnosis.rate_interval import Factors",
    ]
    for rate, by_evidence in factors.items():
        lines += ["", f"{rate.upper()}: Mapping[str, Factors] = {{"]
        lines += [f'    "{kind}": {found},' for kind, found in by_evidence.items()]
        lines += ["}"]
    return "\n".join([*lines, ""])


def coverage_report(
    chosen: Sequence[RateError], others: Sequence[RateError], factors: Mapping[str, Mapping[str, Factors]]
) -> list[str]:
    """The tables of the page: ratios and factors of the runs that set them, and the coverage of the others."""
    lines = [
        "| rate | evidence | runs | truth / estimate, 5 % | median | 95 % | factors | other runs | in the interval |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for rate, by_evidence in factors.items():
        lines += [_row(rate, kind, chosen, others, by_evidence) for kind in by_evidence]
        lines += [_row(rate, "**all**", chosen, others, by_evidence)]
    lines += [
        "",
        "| other runs | sustainable | in the interval | knee | in the interval |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind in dict.fromkeys(each.kind for each in others):
        of_kind = [each for each in others if each.kind == kind]
        cells = [cell for rate in RATES for cell in _covered(rate, of_kind, factors[rate])]
        lines += [f"| {kind} | {' | '.join(cells)} |"]
    return lines


def _row(
    rate: str, kind: str, chosen: Sequence[RateError], others: Sequence[RateError], factors: Mapping[str, Factors]
) -> str:
    found, checked = ([each for each in runs if kind in (each.evidence, "**all**")] for runs in (chosen, others))
    ratios = sorted(ratio for each in found if (ratio := each.ratio(rate)) is not None)
    places = [ratios[round(share * (len(ratios) - 1))] for share in (TAIL, 0.5, 1 - TAIL)] if ratios else []
    shown = [f"{each:.2f}" for each in places] or ["–"] * 3
    ends = f"{factors[kind][0]:.2f} to {factors[kind][1]:.2f}" if kind in factors else ""
    cells = [rate, kind, str(len(ratios)), *shown, ends, *_covered(rate, checked, factors)]
    return f"| {' | '.join(cells)} |"


def _covered(rate: str, runs: Sequence[RateError], factors: Mapping[str, Factors]) -> tuple[str, str]:
    """How many runs have an estimate, and the share of their intervals that contain the truth."""
    answers = [each.covered(rate, factors[each.evidence]) for each in runs if each.evidence in factors]
    found = [each for each in answers if each is not None]
    return str(len(found)), f"{sum(found) / len(found):.0%}" if found else "–"
