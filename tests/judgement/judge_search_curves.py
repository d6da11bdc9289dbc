"""Judges searches of synthetic curves that nobody tuned to: `python -m tests.judgement.judge_search_curves`."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import SearchLimits
from servetop.run.search.search_plan import SearchPlan
from tests.judgement.curve_server import CURVES, NOISES, Curve, CurveServer, draw_curve
from tests.judgement.judge_search import CLOSE
from tests.judgement.report_page import say, share_text, write_between_marks
from tests.judgement.searched_server import searched

MARK = "<!-- make judge-search-curves -->"
"""Encloses the table in the page."""
INSIDE, ABOVE, BELOW = RANGES = ("inside", "above", "below")
"""Where the largest load is: within the loads that may be tried, or beyond them."""
_HEAD = (
    "curve",
    "searches",
    "interval covers",
    "resolved",
    "of them within 5 %",
    "kind of answer right",
    "width",
    "minutes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCurve:
    """One search of a synthetic server beside the truth."""

    curve: Curve
    number: int
    noise: float
    where: str
    """One of `RANGES`."""
    answer: TierAnswer
    minutes: float
    budget: float
    """Minutes."""

    @property
    def covers(self) -> bool:
        """Whether the largest load is in the interval."""
        return self.answer.low <= self.curve.true <= self.answer.high

    @property
    def resolved(self) -> bool:
        """Whether a load is claimed."""
        return self.answer.kind in (AnswerKind.FOUND, AnswerKind.CLIFF)

    @property
    def close(self) -> bool:
        """Whether the load is within 5 % of the truth, or one request in flight."""
        if self.answer.load is None:
            return False
        error = abs(self.answer.load - self.curve.true)
        return error <= max(CLOSE * self.curve.true, 1.0 if self.curve.concurrency else 0.0)

    @property
    def named(self) -> bool:
        """Whether the kind is right: `cliff` where the curve jumps, `wide` only where the budget was used."""
        kind = self.answer.kind
        if self.where != INSIDE:
            return kind is {ABOVE: AnswerKind.ABOVE, BELOW: AnswerKind.BELOW}[self.where]
        if kind is AnswerKind.WIDE:
            return self.covers and self.minutes >= 0.9 * self.budget
        return kind is (AnswerKind.CLIFF if self.curve.kind == "cliff" else AnswerKind.FOUND)


def limits_of(curve: Curve, where: str, *, budget: float) -> SearchLimits:
    """Return the limits of a search; `budget` in seconds."""
    low, high = (1.0 if curve.concurrency else 0.1), 1000.0
    if where == ABOVE:
        high = float(max(2, round(curve.true / 2))) if curve.concurrency else curve.true / 2
    if where == BELOW:
        low = float(round(2 * curve.true)) if curve.concurrency else 2 * curve.true
    return SearchLimits(low=low, high=high, budget=budget, concurrency=curve.concurrency)


def judge_curve(kind: str, number: int, noise: float, where: str = INSIDE, *, budget: float, seed: int) -> JudgedCurve:
    """Search once; `budget` in seconds."""
    curve = draw_curve(kind, number)
    plan = SearchPlan([[0]], [curve.objective], limits_of(curve, where, budget=budget))
    server = CurveServer(curve, noise=noise, seed=seed)
    (answer,) = plan.answers(searched(server, plan, [curve.objective]))
    return JudgedCurve(
        curve=curve,
        number=number,
        noise=noise,
        where=where,
        answer=answer,
        minutes=server.now / 60,
        budget=budget / 60,
    )


def table(found: Sequence[JudgedCurve]) -> list[str]:
    """Return the results as Markdown: rows for kinds, noises and ranges, and every search that is wrong."""
    inside = [each for each in found if each.where == INSIDE]
    rows = [f"| {' | '.join(_HEAD)} |", "|---" * len(_HEAD) + "|"]
    rows += [_row(kind, [each for each in inside if each.curve.kind == kind]) for kind in CURVES]
    rows += [_row(f"noise {100 * noise:g} %", [each for each in inside if each.noise == noise]) for noise in NOISES]
    rows += [
        _row(name, [each for each in inside if each.curve.concurrency is closed])
        for name, closed in (("open loop", False), ("closed loop", True))
    ]
    rows.append(_row("all", inside))
    for where in (ABOVE, BELOW):
        rows.append(_row(f"{where} the range", [each for each in found if each.where == where], covers=False))
    missed = [each for each in inside if not each.covers]
    misnamed = [each for each in found if not each.named and (each.covers or each.where != INSIDE)]
    return [
        *rows,
        "",
        "Searches whose interval does not contain the largest load:",
        "",
        *(map(_result, missed) if missed else ["- none"]),
        "",
        "Further searches whose kind of answer is not right:",
        "",
        *(map(_result, misnamed) if misnamed else ["- none"]),
    ]


def _row(name: str, found: Sequence[JudgedCurve], *, covers: bool = True) -> str:
    claimed = [each for each in found if each.resolved]
    widths = [each.answer.high / each.answer.low - 1 for each in found if each.answer.low]
    cells = [
        str(len(found)),
        share_text([each.covers for each in found]) if covers else "–",
        str(len(claimed)),
        share_text([each.close for each in claimed]),
        share_text([each.named for each in found]),
        f"{100 * statistics.median(widths):.0f} %" if covers and widths else "–",
        f"{statistics.median(each.minutes for each in found):.1f}" if found else "–",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _result(each: JudgedCurve) -> str:
    answer = each.answer
    load = "" if answer.load is None else f" {answer.load:.3g}"
    what = f"{each.curve.kind} {each.number}, noise {100 * each.noise:g} %"
    beyond = "" if each.where == INSIDE else f", {each.where} the range"
    interval = f"[{answer.low:.3g}, {answer.high:.3g}]"
    return f"- {what}{beyond}: {answer.kind}{load} {interval} for {each.curve.true:.3g}, {each.minutes:.1f} minutes"


def cases(servers: int) -> list[tuple[str, int, float, str]]:
    """Return the searches: each server at each noise, and two of each kind whose largest load is out of range."""
    found = [(kind, number, noise, INSIDE) for kind in CURVES for number in range(servers) for noise in NOISES]
    found += [(kind, number, NOISES[1], where) for kind in CURVES for number in (0, 1) for where in (ABOVE, BELOW)]
    return found


def main() -> None:
    """Print the table of searches of drawn curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=10, help="servers of each kind")
    parser.add_argument("--seed", type=int, default=401, help="of the requests")
    parser.add_argument("--minutes", type=float, default=10.0, help="budget of a search")
    parser.add_argument("--workers", type=int, default=2, help="searches at once")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    options = parser.parse_args()
    with ProcessPoolExecutor(max_workers=options.workers) as pool:
        waiting = [
            pool.submit(judge_curve, *case, budget=60 * options.minutes, seed=options.seed + number)
            for number, case in enumerate(cases(options.servers))
        ]
        found = []
        for each in waiting:
            found.append(each.result())
            say(_result(found[-1]))
    lines = table(found)
    say("\n".join(lines))
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
