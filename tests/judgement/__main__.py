"""Lists simulated runs with their truths, or judges them: `python -m tests.judgement [--seed N] [--judge]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.judgement.judging import report, score
from tests.judgement.kinds import KINDS, each_scenario
from tests.judgement.recordings import write_recording
from tests.judgement.report_page import say, write_between_marks
from tests.judgement.scenario import Scenario, describe

MARK = "<!-- make judge -->"
"""Encloses the figures in the page."""
COLUMNS = (
    "name                     cause         onset   first    until  share   requests  sustainable    knee  exceeded"
)


def main(argv: Sequence[str]) -> int:
    """Print one line, or with `--describe` two, for each scenario."""
    options = parsed(argv)
    if options.judge:
        return judge(options)
    say(COLUMNS)
    for scenario in each_scenario(options.seed[0], kinds=options.kind):
        say(line(scenario, rates=options.rates))
        if options.describe:
            say(f"    {describe(scenario)}")
        if options.record:
            write_recording(scenario.run, options.record / f"{scenario.name.replace(' ', '-')}.servetop")
    return 0


def judge(options: argparse.Namespace) -> int:
    """Judge the scenarios of all seeds, and print or write the figures."""
    scores = []
    for seed in options.seed:
        for scenario in each_scenario(seed, kinds=options.kind):
            scores.append(score(scenario))
            say(f"{scenario.name:24} {scores[-1].verdict.value:20} {'' if scores[-1].right else 'WRONG'}")
    lines = [f"Seeds {', '.join(map(str, options.seed))}: {len(scores)} runs.", "", *report(scores)]
    say("\n".join(lines))
    if options.report:
        write_between_marks(options.report, lines, mark=MARK)
    return 0


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.judgement", description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[11, 12, 13], help="what the scenarios are drawn from")
    parser.add_argument("--judge", action="store_true", help="judge the runs of all seeds, and print how often rightly")
    parser.add_argument("--report", type=Path, help="write the figures into this page, between its marks")
    parser.add_argument("--kind", action="append", default=[], choices=list(KINDS), help="only this kind; repeat")
    parser.add_argument("--list", action="store_true", help="print the scenarios with their truths")
    parser.add_argument("--describe", action="store_true", help="print machine, settings and stages too")
    parser.add_argument("--rates", action="store_true", help="compute the sustainable rates and knees, a second each")
    parser.add_argument("--record", type=Path, help="write the runs as recordings into this folder, to replay them")
    return parser.parse_args(argv)


def line(scenario: Scenario, *, rates: bool) -> str:
    """The truth of a scenario in columns; times in seconds, rates in requests per second."""
    truth = scenario.truth
    times = "".join(number(at, 8) for at in (truth.onset, truth.first_sign, truth.until))
    found = (scenario.sustainable_rate, scenario.knee_rate, scenario.overloaded_from) if rates else (None,) * 3
    columns = f"{number(found[0], 12)}{number(found[1], 8)}{number(found[2], 10)}"
    return f"{scenario.name:24} {truth.cause:12}{times}  {truth.share:5.0%}  {len(scenario.run.records):8,}{columns}"


def number(value: float | None, width: int) -> str:
    """A number with one decimal or, below 10, two; a dash if unknown."""
    return f"{'–' if value is None else format(value, '.2f' if value < 10 else '.1f'):>{width}}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
