"""Checks all that servetop says of simulated runs: `python -m tests.judgement.judge_statements [--seed N]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.judgement.kinds import HARD, KINDS, each_scenario
from tests.judgement.matrix import Outcome, outcomes
from tests.judgement.matrix_report import matrix_report
from tests.judgement.report_page import say, write_between_marks

EVERY = (*KINDS, *HARD)
MARK = "<!-- make judge: statements -->"
"""Encloses the matrix in the page."""


def main(argv: Sequence[str]) -> int:
    """Judge the runs of all seeds with each observation; print a line for each run, then the matrix."""
    options = parsed(argv)
    found: list[Outcome] = []
    for seed in options.seed:
        for scenario in each_scenario(seed, kinds=options.kind or EVERY):
            judged = list(outcomes(scenario))
            found += judged
            wrong = [each.observation for each in judged if each.false]
            say(f"{scenario.name:28} {scenario.truth.cause:18} {', '.join(wrong)}")
    lines = [f"Seeds {', '.join(map(str, options.seed))}.", "", *matrix_report(found)]
    say("\n".join(lines))
    if options.report:
        write_between_marks(options.report, lines, mark=MARK)
    return 0


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.judge_statements", description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[11], help="what the scenarios are drawn from")
    parser.add_argument("--kind", action="append", default=[], choices=EVERY, help="only this kind; repeat")
    parser.add_argument("--report", type=Path, help="write the matrix into this page, between its marks")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
