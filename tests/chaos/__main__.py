"""Breaks servetop on purpose: `python -m tests.chaos [--quick] [--seed N] [--only KIND[:CASE]] [--jobs N]`."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.case import Case, Result
from tests.chaos.kinds import KINDS
from tests.chaos.report import BEGIN, END, Figures, replace_between, write_report
from tests.chaos.workers import run_all


def main(argv: Sequence[str]) -> int:
    options = parsed(argv)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    say(f"chaos: seed {seed}; one case alone: python -m tests.chaos --seed {seed} --only KIND:NUMBER")
    cases = list(chosen(options, seed))
    progress = Progress(Figures(seed=seed, cases=len(cases)), options.report)
    deadline = time.monotonic() + 60.0 * options.minutes
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with contextlib.closing(run_all(until(deadline, cases), KINDS, jobs=options.jobs)) as results:
            for case, result in results:
                progress.tell(case, result)
    except KeyboardInterrupt:
        say("chaos: interrupted; what it found so far:")
    progress.figures.over = True
    write_report(progress.figures, to=options.report)
    return 1 if progress.figures.findings or not progress.figures.done else 0


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a cut of five minutes")
    parser.add_argument("--seed", type=int, help="what the cases are drawn from (default: another one each time)")
    parser.add_argument("--only", action="append", default=[], help="a kind, or one case of it as kill:17; repeat")
    parser.add_argument("--jobs", type=int, default=3 * (os.cpu_count() or 2), help="cases at once: they mostly wait")
    parser.add_argument("--minutes", type=float, default=60.0, help="no new case is started after these")
    parser.add_argument("--report", default="", help="a file whose figures are replaced (docs/reliability.md)")
    parser.add_argument("--list", action="store_true", help="name the kinds")
    options = parser.parse_args(argv)
    if options.list:
        say("\n".join(f"{name:12} {kind.whole:6} {kind.quick:5}  {kind.what}" for name, kind in KINDS.items()))
        sys.exit(0)
    return options


def chosen(options: argparse.Namespace, seed: int) -> Iterator[Case]:
    """All cases, one of each kind first and then mixed, so that none is left out for time; or the requested ones."""
    cases: list[tuple[float, Case]] = []
    chance = random.Random(seed)
    for name, kind in KINDS.items():
        numbers = set(range(kind.quick if options.quick else kind.whole))
        if options.only:
            requested = [only.partition(":") for only in options.only]
            alone = {int(number) for kind_name, _, number in requested if kind_name == name and number}
            numbers = alone or (numbers if any(word == (name, "", "") for word in requested) else set())
        for place, number in enumerate(sorted(numbers)):
            cases.append((place and chance.uniform(1.0, 2.0), Case(name, number, seed, os.getpid())))
    yield from (case for _, case in sorted(cases, key=lambda pair: pair[0]))


def until(deadline: float, cases: Sequence[Case]) -> Iterator[Case]:
    for case in cases:
        if time.monotonic() > deadline:
            return
        yield case


@dataclass
class Progress:
    """Progress: findings at once, figures now and then; also in the report."""

    figures: Figures
    report: str
    _said: float = field(default_factory=time.monotonic)

    def tell(self, case: Case, result: Result) -> None:
        self.figures.add(case, result)
        for finding in result.findings:
            say(f"chaos: {case.name}: {finding.fault}: {finding.words}")
            say(f"       again: python -m tests.chaos --seed {self.figures.seed} --only {case.name}")
        if time.monotonic() - self._said > 15.0:
            self._said = time.monotonic()
            say(f"chaos: {self.figures.done} of {self.figures.cases} cases, {len(self.figures.findings)} findings")
            if self.report:
                replace_between(Path(self.report), self.figures.text(), BEGIN, END)


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
