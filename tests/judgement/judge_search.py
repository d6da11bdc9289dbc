"""Judges searches of servers whose largest load is known: `python -m tests.judgement.judge_search`."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import SearchLimits
from servetop.run.search.search_plan import SearchPlan
from tests.judgement.report_page import say, share_text, write_between_marks
from tests.judgement.searched_server import searched
from tests.judgement.searched_servers import KINDS, WIDE_CLOSED_LOOP, LargestLoad, draw_case

TRUTHS = Path(__file__).with_name("largest_loads.json")
JUDGED = (*KINDS, WIDE_CLOSED_LOOP)
CLOSE = 0.05
"""Relative error up to which an answer counts as close."""

_COARSE, _COARSE_SECONDS = 0.3, 480.0
"""Precision and budget of coarse searches, ..."""
_PRIORS = {"coarse": None, "coarse, 4 times the load expected": 4.0, "coarse, a quarter expected": 0.25}
"""... and the names of those that begin at `--low`, or with an expected load: that many times the largest one."""
MARK = "<!-- make judge-search -->"
"""Encloses the table in the page."""
_HEAD = (
    "server",
    "searches",
    "interval covers",
    "resolved",
    "of them within 5 %",
    "answer within 5 %",
    "width",
    "minutes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSearch:
    """One search beside the truth."""

    kind: str
    server: int
    seed: int
    true: LargestLoad
    answer: TierAnswer
    minutes: float
    """Of load."""

    @property
    def covers(self) -> bool:
        """Whether the largest load is in the interval."""
        return self.true.is_in(self.answer.low, self.answer.high)

    @property
    def error(self) -> float:
        """Relative error of the answer; infinity without one."""
        return self.true.error(self.answer.load)


def judge(
    kind: str,
    server: int,
    seed: int,
    true: LargestLoad,
    noise: float = 0.0,
    *,
    budget: float,
    precision: float = 0.05,
    prior: float | None = None,
) -> JudgedSearch:
    """Search once; `budget` in seconds. The search expects its answer at `prior` times the largest load.

    `noise` is that of the server's speed.
    """
    case = replace(draw_case(kind, server), noise=noise)
    limits = SearchLimits(
        low=1.0 if case.concurrency else 0.1,
        high=1000.0,
        budget=budget,
        concurrency=case.concurrency,
        precision=precision,
        prior=None if prior is None else prior * true.middle,
    )
    plan = SearchPlan([[0]], [case.objective], limits)
    engine = case.server(seed)
    evidence = searched(engine, plan, [case.objective])
    (answer,) = plan.answers(evidence)
    return JudgedSearch(kind=kind, server=server, seed=seed, true=true, answer=answer, minutes=engine.now / 60)


def table(found: Sequence[JudgedSearch], coarse: Mapping[str, Sequence[JudgedSearch]] | None = None) -> list[str]:
    """Return the results as Markdown: a row for each kind and each sort of coarse searches, and all that missed."""
    coarse = coarse or {}
    parts = {kind: [each for each in found if each.kind == kind] for kind in JUDGED}
    return [*rows({**parts, "all": found, **coarse}), "", *misses({"": found, **coarse})]


def rows(parts: Mapping[str, Sequence[JudgedSearch]]) -> list[str]:
    """Return a Markdown table with a row for each part, by its name."""
    head = [f"| {' | '.join(_HEAD)} |", "|---" * len(_HEAD) + "|"]
    return head + [_row(name, searches) for name, searches in parts.items()]


def misses(parts: Mapping[str, Sequence[JudgedSearch]]) -> list[str]:
    """Return all searches whose interval misses the largest load, with the name of their part, or that none does."""
    found = [(each, name) for name, searches in parts.items() for each in searches if not each.covers]
    if not found:
        return ["Every interval contains the largest load."]
    lines = [f"{_result(each)}{f', {name}' if name else ''}" for each, name in found]
    return ["Searches whose interval does not contain the largest load:", "", *lines]


def _row(name: str, found: Sequence[JudgedSearch]) -> str:
    claimed = [each for each in found if each.answer.kind in (AnswerKind.FOUND, AnswerKind.CLIFF)]
    widths = [each.answer.high / each.answer.low - 1 for each in found if each.answer.low]
    cells = [
        str(len(found)),
        share_text([each.covers for each in found]),
        str(len(claimed)),
        share_text([each.error <= CLOSE for each in claimed]),
        share_text([each.error <= CLOSE for each in found]),
        f"{100 * statistics.median(widths):.0f} %" if widths else "–",
        f"{statistics.median(each.minutes for each in found):.1f}" if found else "–",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _result(each: JudgedSearch) -> str:
    answer = each.answer
    load = "–" if answer.load is None else f"{answer.load:.3g}"
    interval = f"[{answer.low:.3g}, {answer.high:.3g}]"
    return f"- {each.kind} {each.server}, seed {each.seed}: {load} {interval} for {each.true}"


def largest_loads() -> dict[str, LargestLoad]:
    """Return those that are stored, by kind and number."""
    return {name: LargestLoad.of(each) for name, each in json.loads(TRUTHS.read_text(encoding="utf-8")).items()}


def truths(servers: Sequence[int]) -> None:
    """Compute the largest loads of servers by long runs, and store them (a minute each)."""
    known = json.loads(TRUTHS.read_text(encoding="utf-8")) if TRUTHS.exists() else {}
    for server in servers:
        for kind in JUDGED:
            if f"{kind} {server}" in known:
                continue
            found = [float(f"{each:.4g}") for each in draw_case(kind, server).largest_loads()]
            known[f"{kind} {server}"] = found if len(found) > 1 else found[0]
            TRUTHS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def options_of(
    description: str | None, *, servers: Sequence[int], seeds: Sequence[int], minutes: float
) -> argparse.Namespace:
    """Parse the command line of a judgement of searches, with these defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--servers", type=int, nargs="+", default=servers)
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    parser.add_argument("--minutes", type=float, default=minutes, help="budget of a search")
    parser.add_argument("--truth", action="store_true", help="compute the largest loads of the servers instead")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    return parser.parse_args()


def main() -> None:
    """Print the table of searches on stored servers."""
    options = options_of(__doc__, servers=(21, 22), seeds=(201, 202, 203), minutes=20.0)
    if options.truth:
        truths(options.servers)
        return
    known = largest_loads()
    cases = [(kind, server, seed) for kind in JUDGED for server in options.servers for seed in options.seeds]
    trues = [known[f"{kind} {server}"] for kind, server, _ in cases]
    with ProcessPoolExecutor(max_workers=2) as pool:

        def judged(judge_of: Callable[[str, int, int, LargestLoad], JudgedSearch]) -> list[JudgedSearch]:
            return list(pool.map(judge_of, *zip(*cases, strict=True), trues))

        found = judged(partial(judge, budget=60 * options.minutes))
        coarse_judge = partial(judge, budget=_COARSE_SECONDS, precision=_COARSE)
        coarse = {name: judged(partial(coarse_judge, prior=prior)) for name, prior in _PRIORS.items()}
    lines = table(found, coarse)
    say("\n".join(lines))
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
