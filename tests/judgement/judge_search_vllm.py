"""Repeats a search on a real vLLM on the CPU: ten times on one start, and once on each of ten starts.

`python -m tests.judgement.judge_search_vllm`; the truth is unknown here, so what is judged is whether answers agree.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Self

from tests.harness import Servetop
from tests.integration.harness import ENVIRONMENT, WITHOUT_CACHE, Vllm, home_of, vllm_server, warm_up
from tests.integration.real_engines import started
from tests.judgement.report_page import say, write_between_marks

SERVER = ("--max-num-seqs", "8", "--num-gpu-blocks-override", "512", WITHOUT_CACHE)
MARK = "<!-- make judge-search-vllm -->"
OBJECTIVE = "p90_ttft<300ms"
SHAPE = ("--input-len", "64", "--output-len", "64", "--ignore-eos")
_NORMAL = 1.96
"""Standard errors to either side of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of one search."""

    kind: str
    load: float
    """Requests/s; nan if the answer names none."""
    low: float
    high: float
    """The 95 % interval; 0 and infinity for an end that is not known."""
    minutes: float
    client_bound: bool
    """Whether the search says that this machine was too busy to send more."""

    @classmethod
    def of(cls, servetop: Servetop, url: str, *, budget: float, seed: int) -> Self:
        """Search a running server once."""
        limits = ("--slo", OBJECTIVE, "--budget", f"{budget:g}s", "--low", "2", "--high", "100", "--prior", "10")
        done = servetop(
            "search",
            "--url",
            url,
            *SHAPE,
            *limits,
            "--seed",
            str(seed),
            "--headless",
            "--json",
            timeout=10 * budget + 300,
        )
        result = done.summary
        tier = result["tiers"][0]
        low, high = tier["low"], tier["high"]
        return cls(
            kind=tier["kind"],
            load=math.nan if tier["load"] is None else tier["load"],
            low=0.0 if low is None else low,
            high=math.inf if high is None else high,
            minutes=result["seconds"] / 60,
            client_bound="client-bound" in (result["error"] or ""),
        )


def overlap(answers: Sequence[Found]) -> float:
    """Return the share of pairs of answers whose intervals have a load in common; nan without a pair."""
    pairs = [max(a.low, b.low) <= min(a.high, b.high) for a, b in combinations(answers, 2)]
    return sum(pairs) / len(pairs) if pairs else math.nan


def scatter(answers: Sequence[Found]) -> float:
    """Return the standard deviation of the logarithms of the loads over that which their intervals claim.

    Near 1: the intervals tell the truth about repetition; below it they are wider than needed. nan for less than two
    answers with both ends.
    """
    known = [each for each in answers if each.load > 0 and each.low > 0 and math.isfinite(each.high)]
    if len(known) < 2:
        return math.nan
    claimed = [math.log(each.high / each.low) / (2 * _NORMAL) for each in known]
    seen = statistics.stdev(math.log(each.load) for each in known)
    return seen / math.sqrt(statistics.fmean(each**2 for each in claimed))


def row(name: str, answers: Sequence[Found]) -> str:
    """Return the line of the table for some searches."""
    loads = [each.load for each in answers if each.load > 0]
    widths = [each.high / each.low - 1 for each in answers if each.low > 0 and math.isfinite(each.high)]
    common = max(each.low for each in answers) <= min(each.high for each in answers)
    cells = (
        name,
        str(len(answers)),
        f"{statistics.median(loads):.3g}" if loads else "–",
        f"{min(loads):.3g} to {max(loads):.3g}" if loads else "–",
        f"{100 * statistics.median(widths):.0f} %" if widths else "–",
        f"{100 * overlap(answers):.0f} %",
        "yes" if common else "no",
        f"{scatter(answers):.2f}",
        f"{statistics.median(each.minutes for each in answers):.1f}",
    )
    return f"| {' | '.join(cells)} |"


def table(one_start: Sequence[Found], starts: Sequence[Found]) -> list[str]:
    """Return the lines of the page."""
    answers = [*one_start, *starts]
    lines = [
        "| searches of | number | median, req/s | answers, req/s | width | pairs of intervals that overlap "
        "| a load in all | scatter / claimed | minutes |",
        "|---|---|---|---|---|---|---|---|---|",
        row("one start", one_start),
        row(f"{len(starts)} starts", starts),
        "",
        "Answers: "
        + "; ".join(
            f"{name} {', '.join(f'{each.load:.3g} [{each.low:.3g}, {each.high:.3g}]' for each in found)}"
            for name, found in (("one start", one_start), ("starts", starts))
        )
        + ".",
    ]
    kinds = sorted({each.kind for each in answers})
    bound = sum(each.client_bound for each in answers)
    return [*lines, "", f"Kinds of answer: {', '.join(kinds)}. Ended because the client could not send more: {bound}."]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.judge_search_vllm", description=__doc__)
    parser.add_argument("--searches", type=int, default=10, help="searches of one start, and starts")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of each search")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    options = parser.parse_args()
    vllm = Vllm(home_of("vllm"))
    found: tuple[list[Found], list[Found]] = [], []
    with tempfile.TemporaryDirectory(prefix="judge-search-vllm-") as name:
        for start in range(options.searches):
            folder = Path(name) / str(start)
            with started(vllm_server(vllm, *SERVER), Path(name) / f"log-{start}") as engine:
                warm_up(engine.url, folder)
                for number in range(options.searches if start == 0 else 1):
                    seed = 1 + number + options.searches * start
                    answer = Found.of(Servetop(folder, ENVIRONMENT), engine.url, budget=options.budget, seed=seed)
                    say(f"start {start + 1}, search {number + 1}: {answer}")
                    if start == 0:
                        found[0].append(answer)
                    if number == 0:
                        found[1].append(answer)
    lines = table(*found)
    say("\n".join(lines))
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
