"""Judges comparisons of simulated runs whose true difference is known: `python -m tests.comparisons [--seed N]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.comparisons.changed_engine import CHANGES, find_change
from tests.comparisons.same_engine import SETTINGS, compare_same
from tests.comparisons.sequential_series import sequential_tables
from tests.comparisons.tables import change_table, same_table
from tests.judgement.report_page import say, write_between_marks


def main(argv: Sequence[str]) -> int:
    """Judge all settings and changes, in two processes; print the tables, or write them into the page."""
    options = _parsed(argv)
    names = [each.name for each in SETTINGS] + [each.name for each in CHANGES]
    chosen = [name for name in names if not options.only or any(text in name for text in options.only)]
    with ProcessPoolExecutor(max_workers=2) as pool:
        same = {
            each: pool.submit(compare_same, each, seed=options.seed, pairs=options.pairs)
            for each in SETTINGS
            if each.name in chosen and options.pairs
        }
        changed = {
            each: pool.submit(find_change, each, seed=options.seed, cases=options.cases)
            for each in CHANGES
            if each.name in chosen and options.cases
        }
        pairs = None if options.only else pool.submit(sequential_tables, seed=options.seed, series=options.series)
        lines = [f"Seed {options.seed}.", ""]
        if same:
            lines += [*same_table({each.name: job.result() for each, job in same.items()}), ""]
        if changed:
            lines += change_table({each.name: job.result() for each, job in changed.items()})
        if pairs is not None:
            lines += ["", *pairs.result()]
    say("\n".join(lines))
    if options.report:
        write_between_marks(options.report, lines, mark="<!-- make judge-compare -->")
    return 0


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.comparisons", description=__doc__)
    parser.add_argument("--seed", type=int, default=11, help="what engines, loads and noise are drawn from")
    parser.add_argument("--pairs", type=int, default=250, help="pairs of equal engines in each setting")
    parser.add_argument("--cases", type=int, default=100, help="engines in which each change is planted")
    parser.add_argument("--series", type=int, default=200, help="simulated series of pairs, equal and not")
    parser.add_argument("--only", action="append", default=[], help="only settings and changes with this text; repeat")
    parser.add_argument("--report", type=Path, help="write the tables into this page, between its marks")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
