"""Reconciles load generators at one simulator: `python -m tests.judgement.judge_reconcile`.

Each sends the same prompts in two loads to a simulator that notes each request (servetop audit --record). Of each pair
of clients the table has what each figure differs by, and how much of it is left unexplained, without and with the
server's times. A pair whose prompts differ, as those of two tools do without a common file, is set beside them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from servetop.core.text.counted import counted
from servetop.run.reconcile.tool_run import read_tool_run
from tests.judgement.audit_clients import SERVER
from tests.judgement.client_commands import CLIENTS, INPUT, LeftOutError, Load, loads
from tests.judgement.report_page import say, write_between_marks
from tests.judgement.shared_prompts import shared_prompts

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
OWN = "vLLM bench"
"""The client that is also measured with prompts of its own."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The result of one client under one load, and what the server saw of it."""

    name: str
    load: str
    result: Path
    truth: Path


def measure(name: str, load: Load, folder: Path) -> Measured:
    """Run one client against a simulator of its own, or return what is kept of it; LeftOutError if it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    words, result = CLIENTS[name](load, folder)
    truth = folder / "server.servetop"
    found = Measured(name=name, load=load.title, result=result, truth=truth)
    if result.exists() and truth.exists():
        return found
    argv = (sys.executable, "-m", "servetop", "audit", *SERVER, "--json", "--record", str(truth), "--", *words)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode or not result.exists():
        raise LeftOutError(done.stderr[-500:])
    return found


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
    """Return how many figures keep the target, as the end of a sentence for the page."""
    left = [abs(each["unexplained_percent"]) for waterfalls in found for each in waterfalls.values()]
    kept = sum(each <= TARGET for each in left)
    return (
        f"{kept} of {len(left)} figures of {counted(len(found), 'pair')} have at most {TARGET:g} % unexplained "
        f"(the target); the largest rest is {max(left, default=0.0):.2f} %"
    )


def tokens_of(measured: Measured) -> str:
    """Return the tokens of a client's requests as the server counted them."""
    requests = read_tool_run(str(measured.truth)).requests
    texts = []
    for title, counts in (
        ("prompt", [each.prompt_tokens or 0 for each in requests]),
        ("output", [each.output_tokens for each in requests]),
    ):
        mean = sum(counts) / len(counts)
        varied = min(counts) != max(counts)
        texts.append(f"{mean:.1f} ({min(counts)} to {max(counts)}) {title}" if varied else f"{mean:.0f} {title}")
    return f"{measured.name} {' and '.join(texts)}"


@dataclass(kw_only=True)
class PairTable:
    """The rows of all pairs, those with the same prompts and those without, and what the server counted of them."""

    folder: Path
    alike: list[Mapping[str, Any]] = field(default_factory=list)
    unlike: list[Mapping[str, Any]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    tokens: dict[str, None] = field(default_factory=dict)

    def measure(self, name: str, load: Load) -> list[Measured]:
        """Measure a client, and return nothing if it fails."""
        title = name if load.prompts else f"{name} with its own prompts"
        try:
            found = measure(name, load, self.folder / f"{load.title} {title}".replace(" ", "-").replace("/", "-"))
        except LeftOutError as error:
            say(f"LEFT OUT: {title}, {load.title}: {error}")
            return []
        found = replace(found, name=title)
        self.tokens[tokens_of(found)] = None
        say(f"{tokens_of(found)}, {load.title}: measured")
        return [found]

    def add(self, a: Measured, b: Measured, found: list[Mapping[str, Any]]) -> None:
        """Reconcile a pair without and with the server's times."""
        blind, seeing = (reconciled(a, b, truths=truths) for truths in (False, True))
        found.append(seeing)
        self.rows += rows_of(a, b, blind, seeing)
        say("\n".join(self.rows[-len(TITLES) :]))

    @property
    def lines(self) -> list[str]:
        """The table and its conclusions."""
        heads = ["A, B", "load", "figure", "B − A", "largest steps", "unexplained", "with the server's times"]
        said = [f"Tokens of a request as the server counted them: {'; '.join(self.tokens)}.", ""]
        said.append(f"With the server's times and the same prompts {conclusion(self.alike)}.")
        if self.unlike:
            said.append(f"With other prompts {conclusion(self.unlike)}.")
        return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *self.rows, "", *said]


def table(seconds: float, names: Sequence[str], folder: Path) -> list[str]:
    """Measure each client under each load, and return the table of all pairs."""
    found = PairTable(folder=folder)
    for load in loads(seconds):
        shared = replace(load, prompts=shared_prompts(load.count, tokens=INPUT))
        measured = [each for name in names for each in found.measure(name, shared)]
        for a, b in itertools.combinations(measured, 2):
            found.add(a, b, found.alike)
        other = found.measure(OWN, load) if OWN in names else []
        for a, b in itertools.product(measured[:1], other):
            found.add(a, b, found.unlike)
    return found.lines


def main() -> None:
    """Print the table, and write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=list(CLIENTS))
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each load")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    parser.add_argument(
        "--keep", type=Path, help="a folder for the results, else they are removed; those in it are used again"
    )
    options = parser.parse_args()
    names = options.client or list(CLIENTS)
    if options.keep is not None:
        lines = table(options.seconds, names, options.keep)
    else:
        with tempfile.TemporaryDirectory() as folder:
            lines = table(options.seconds, names, Path(folder))
    say("\n".join(lines[-3:]))
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
