"""Compares searches with AIPerf's planner on equal curves: `python -m tests.judgement.judge_search_aiperf`.

AIPerf's planner runs in an environment of its own and decides on the runs; the curves answer them in virtual time. Its
adaptive scale is bound to a live run, so the rule of version 0.13.0 (`timing/strategies/adaptive_scale.py`) is written
again here.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from tests.judgement.curve_server import CURVES, NOISES, Curve, CurveServer, draw_curve
from tests.judgement.judge_search import CLOSE
from tests.judgement.judge_search_curves import judge_curve
from tests.judgement.report_page import say, share_text, write_between_marks

MARK = "<!-- make judge-search-aiperf -->"
"""Encloses the table in the page."""
OWN = "servetop"
PROGRAM = Path(__file__).with_name("aiperf_planner.py")
_TENTH, _MORE = "servetop, a tenth of AIPerf's minutes", "servetop, 1.2 × adaptive scale's minutes"
_PLANNER_PART, _SCALE_PART = 0.1, 1.2
"""The budgets of further searches: these parts of the minutes that the others took on the same curve."""
_STEP = 5.0
"""Seconds of a run after which its requests are counted."""
_SCALE_WINDOW, _SCALE_STEP, _SCALE_MULTIPLIER, _SCALE_MOST = 30.0, 10, 4, 1000
"""Defaults of adaptive scale: seconds of a window, requests in flight of a step, its largest factor, largest load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a search claims about a curve."""

    tool: str
    curve: Curve
    number: int
    noise: float
    load: float | None
    low: float
    high: float
    minutes: float
    reason: str
    resolved: bool
    """Whether the load is claimed as the answer; servetop calls it unresolved while its interval is too wide."""

    @property
    def covers(self) -> bool:
        """Whether the largest load is in the interval."""
        return self.low <= self.curve.true <= self.high

    @property
    def close(self) -> bool:
        """Whether the load is within 5 % of the truth, or one request in flight."""
        return self.load is not None and abs(self.load - self.curve.true) <= max(CLOSE * self.curve.true, 1.0)


def run(server: CurveServer, load: int, *, warmup: float, requests: int) -> float:
    """Return the quantile of the objective in seconds from a run: `requests` requests after the warm-up."""
    server.keep(load, max(warmup, 1e-6))
    begin = server.now
    seen: list[float] = []
    while len(seen) < requests:
        server.keep(load, _STEP * max(1.0, (requests - len(seen)) / load * server.curve.limit / 20))
        seen = server.latencies_since(begin)
    return float(np.quantile(seen[:requests], server.curve.share))


def adaptive_scale(kind: str, number: int, noise: float, *, seed: int) -> Claim:
    """Return what AIPerf's adaptive scale finds: the last load of a rising ramp before the first window that fails."""
    curve = draw_curve(kind, number)
    server = CurveServer(curve, noise=noise, seed=seed)
    load, last = 1, 0
    while load <= _SCALE_MOST:
        begin = server.now
        server.keep(load, _SCALE_WINDOW)
        ended = server.latencies_until(begin)  # a window has what ends in it, whenever it was sent
        if not ended:
            continue
        margin = 1 - float(np.quantile(ended, curve.share)) / curve.limit
        if margin <= 0:
            break
        last = load
        load += _SCALE_STEP * max(1, min(_SCALE_MULTIPLIER, int(margin * _SCALE_MULTIPLIER)))
    return Claim(
        tool="adaptive scale",
        curve=curve,
        number=number,
        noise=noise,
        load=float(last) or None,
        low=float(last),
        high=float(load - 1),
        minutes=server.now / 60,
        reason="failed window",
        resolved=last > 0,
    )


class Planner:
    """AIPerf's planner as a process; one search at a time."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def search(self, kind: str, number: int, noise: float, *, seed: int) -> Claim:
        """Search once."""
        curve = draw_curve(kind, number)
        server = CurveServer(curve, noise=noise, seed=seed)
        answer = self._ask(f"search p{100 * curve.share:.0f} {1000 * curve.limit:g}")
        while answer[0] == "run":
            load, warmup, requests = int(answer[1]), float(answer[2]), int(answer[3])
            answer = self._ask(f"{1000 * run(server, load, warmup=warmup, requests=requests):.6g}")
        low, high = float(answer[1]), float(answer[2])
        return Claim(
            tool="AIPerf",
            curve=curve,
            number=number,
            noise=noise,
            load=low or None,
            low=low,
            high=high - 1 if high else math.inf,  # the least load that failed is not the answer
            minutes=server.now / 60,
            reason=answer[3],
            resolved=low > 0,
        )

    def _ask(self, line: str) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if not answer:
            raise RuntimeError("the planner ended: does its environment have aiperf?")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


def own(kind: str, number: int, noise: float, *, budget: float, seed: int, tool: str = OWN) -> Claim:
    """Return what `servetop search` claims; `budget` in seconds."""
    judged = judge_curve(kind, number, noise, budget=budget, seed=seed)
    answer = judged.answer
    return Claim(
        tool=tool,
        curve=judged.curve,
        number=number,
        noise=noise,
        load=answer.load,
        low=answer.low,
        high=answer.high,
        minutes=judged.minutes,
        reason=str(answer.kind),
        resolved=judged.resolved,
    )


def table(found: Sequence[Claim], tools: Sequence[str]) -> list[str]:
    """Return the results as Markdown: a row for each kind and noise."""
    cells = [f"{tool}: {what}" for tool in tools for what in ("interval covers", "within 5 %", "width", "minutes")]
    head = ["curve", "searches", *cells]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    rows += [_row(kind, [each for each in found if each.curve.kind == kind], tools) for kind in CURVES]
    rows += [
        _row(f"noise {100 * noise:g} %", [each for each in found if each.noise == noise], tools) for noise in NOISES
    ]
    return [*rows, _row("all", found, tools)]


def equal_minutes(found: Sequence[Claim]) -> list[str]:
    """Return the results of all curves as Markdown: a row for each tool, those of servetop by budget."""
    measured = ["interval covers", "within 5 %", "width", "minutes"]
    head = ["search", "searches", *measured, "resolved", "of them within 5 %"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for tool in dict.fromkeys(each.tool for each in found):
        claims = [each for each in found if each.tool == tool]
        resolved = [each for each in claims if each.resolved]
        rows.append(f"{_row(tool, claims, [tool])} {len(resolved)} | {share_text([each.close for each in resolved])} |")
    return rows


def _row(name: str, found: Sequence[Claim], tools: Sequence[str]) -> str:
    cells = []
    for tool in tools:
        own_claims = [each for each in found if each.tool == tool]
        widths = [each.high / each.low - 1 for each in own_claims if each.low]
        cells += [
            share_text([each.covers for each in own_claims]),
            share_text([each.close for each in own_claims]),
            f"{100 * statistics.median(widths):.0f} %" if widths else "–",
            f"{statistics.median(each.minutes for each in own_claims):.1f}" if own_claims else "–",
        ]
    return f"| {name} | {len(found) // len(tools)} | {' | '.join(cells)} |"


def _result(each: Claim) -> str:
    load = "–" if each.load is None else f"{each.load:.0f}"
    what = f"{each.curve.kind} {each.number}, noise {100 * each.noise:g} %"
    claim = f"{load} [{each.low:.0f}, {each.high:.0f}] for {each.curve.true:.0f}"
    return f"- {each.tool}, {what}: {claim}, {each.minutes:.1f} minutes, {each.reason}"


def main() -> None:
    """Print the table of both on the closed loops among the drawn curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aiperf", required=True, metavar="PYTHON", help="the Python of an environment with aiperf")
    parser.add_argument("--servers", type=int, default=10, help="servers of each kind, of which half are closed loops")
    parser.add_argument("--seed", type=int, default=501, help="of the requests")
    parser.add_argument("--minutes", type=float, default=10.0, help="budget of a search by servetop")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    options = parser.parse_args()
    cases = [(kind, number, noise) for kind in CURVES for number in range(0, options.servers, 2) for noise in NOISES]
    found = []
    with Planner(options.aiperf) as planner:
        for place, case in enumerate(cases):
            seed = options.seed + place
            planned, scaled = planner.search(*case, seed=seed), adaptive_scale(*case, seed=seed)
            found += [own(*case, budget=60 * options.minutes, seed=seed), planned, scaled]
            found.append(own(*case, budget=60 * _PLANNER_PART * planned.minutes, seed=seed, tool=_TENTH))
            found.append(own(*case, budget=60 * _SCALE_PART * scaled.minutes, seed=seed, tool=_MORE))
            say("\n".join(map(_result, found[-5:])))
    tools = [OWN, "AIPerf", "adaptive scale"]
    lines = [*table([each for each in found if each.tool in tools], tools), "", *equal_minutes(found)]
    say("\n".join(lines))
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
