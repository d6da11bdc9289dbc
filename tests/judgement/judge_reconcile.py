"""Reconciles servetop, vLLM bench and AIPerf at one simulator: `python -m tests.judgement.judge_reconcile`.

Each sends the same two loads to a simulator that notes each request (servetop audit --record). Of each pair of clients
the table has what each figure differs by, and how much of it is left unexplained, without and with the server's times.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.judgement.audit_clients import CLIENTS, SERVER, LeftOutError, Load, loads
from tests.judgement.report_page import say, write_between_marks

MARK = "<!-- make judge-reconcile -->"
TITLES: Mapping[str, str] = {
    "mean_ttft_ms": "TTFT",
    "mean_tpot_ms": "TPOT",
    "mean_itl_ms": "ITL",
    "mean_e2el_ms": "E2EL",
    "output_throughput": "tok/s",
    "request_throughput": "req/s",
}
TARGET = 1.0
"""Percent of a figure that may be left unexplained."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The result of one client under one load, and what the server saw of it."""

    name: str
    load: str
    result: Path
    truth: Path


def measure(name: str, load: Load, folder: Path) -> Measured:
    """Run one client against a simulator of its own; LeftOutError if it fails."""
    folder.mkdir(parents=True)
    words, result = CLIENTS[name](load, folder)
    truth = folder / "server.servetop"
    argv = (sys.executable, "-m", "servetop", "audit", *SERVER, "--json", "--record", str(truth), "--", *words)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode or not result.exists():
        raise LeftOutError(done.stderr[-500:])
    return Measured(name=name, load=load.title, result=result, truth=truth)


def reconciled(a: Measured, b: Measured, *, truths: bool) -> Mapping[str, Any]:
    """Return the waterfalls of a pair by metric."""
    known = ("--truth-a", str(a.truth), "--truth-b", str(b.truth)) if truths else ()
    argv = (sys.executable, "-m", "servetop", "reconcile", str(a.result), str(b.result), "--json", *known)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LeftOutError(done.stderr[-500:])
    return {each["metric"]: each for each in json.loads(done.stdout)["waterfalls"]}


def rows_of(a: Measured, b: Measured, blind: Mapping[str, Any], seeing: Mapping[str, Any]) -> list[str]:
    """Return a row of the table for each figure."""
    rows = []
    for metric, title in TITLES.items():
        if metric not in blind or metric not in seeing:
            rows.append(f"| {a.name}, {b.name} | {a.load} | {title} | – | – | – | – |")
            continue
        waterfall = seeing[metric]
        middle = (waterfall["a"] + waterfall["b"]) / 2
        explained = sorted(waterfall["steps"][:-1], key=lambda step: -abs(step["effect"] or 0.0))
        largest = "; ".join(
            f"{each['kind']} {100 * each['effect'] / middle:+.1f} %"
            for each in explained[:2]
            if abs(100 * (each["effect"] or 0.0) / middle) >= 0.05
        )
        cells = [
            f"{100 * (waterfall['b'] - waterfall['a']) / middle:+.1f} %",
            largest or "–",
            _left(blind[metric]),
            _left(waterfall),
        ]
        rows.append(f"| {a.name}, {b.name} | {a.load} | {title} | {' | '.join(cells)} |")
    return rows


def _left(waterfall: Mapping[str, Any]) -> str:
    outside = "" if waterfall["within_chance"] is not False else " ✗"
    return f"{waterfall['unexplained_percent']:+.2f} %{outside}"


def conclusion(found: Sequence[Mapping[str, Any]]) -> str:
    """Return how many figures keep the target, as a sentence for the page."""
    left = [abs(each["unexplained_percent"]) for waterfalls in found for each in waterfalls.values()]
    kept = sum(each <= TARGET for each in left)
    return (
        f"With the server's times {kept} of {len(left)} figures of {len(found)} pairs have at most {TARGET:g} % "
        f"unexplained (the target); the largest rest is {max(left, default=0.0):.2f} %."
    )


def table(seconds: float, names: Sequence[str], folder: Path) -> list[str]:
    """Measure each client under each load, and return the table of all pairs."""
    heads = ["A, B", "load", "figure", "B − A", "largest steps", "unexplained", "with the server's times"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    found = []
    for number, load in enumerate(loads(seconds)):
        measured = []
        for name in names:
            try:
                measured.append(measure(name, load, folder / f"{number}-{name.replace(' ', '-')}"))
                say(f"{name}, {load.title}: measured")
            except LeftOutError as error:
                say(f"LEFT OUT: {name}, {load.title}: {error}")
        for a, b in itertools.combinations(measured, 2):
            blind, seeing = (reconciled(a, b, truths=truths) for truths in (False, True))
            found.append(seeing)
            lines += rows_of(a, b, blind, seeing)
            say("\n".join(lines[-len(TITLES) :]))
    return [*lines, "", conclusion(found)]


def main() -> None:
    """Print the table, and write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=list(CLIENTS))
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each load")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    parser.add_argument("--keep", type=Path, help="a new folder for the results, else they are removed")
    options = parser.parse_args()
    names = options.client or list(CLIENTS)
    if options.keep is not None:
        lines = table(options.seconds, names, options.keep)
    else:
        with tempfile.TemporaryDirectory() as folder:
            lines = table(options.seconds, names, Path(folder))
    say(lines[-1])
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
