"""Judges searches of servers whose speed varies: `python -m tests.judgement.judge_search_noise`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.judgement.curve_server import NOISES
from tests.judgement.judge_search import JUDGED, JudgedSearch, judge, largest_loads, misses, options_of, rows
from tests.judgement.report_page import say, write_between_marks
from tests.judgement.searched_servers import LargestLoad, SearchedCase, draw_case

TRUTHS = Path(__file__).with_name("largest_noisy_loads.json")
MARK = "<!-- make judge-search-noise -->"
"""Encloses the table in the page."""
SERVERS = (21,)
_SEEDS = range(201, 211)
_MINUTES = 10.0


def noisy_case(kind: str, server: int, noise: float) -> SearchedCase:
    """Return a server whose speed varies by `noise` from one block of time to the next."""
    return replace(draw_case(kind, server), noise=noise)


def noisy_loads() -> dict[str, LargestLoad]:
    """Return the largest loads that are stored, by kind, number and noise."""
    known = {_name(name, 0.0): each for name, each in largest_loads().items()}
    stored = json.loads(TRUTHS.read_text(encoding="utf-8"))
    return known | {name: LargestLoad.of(each) for name, each in stored.items()}


def truths(servers: Sequence[int]) -> None:
    """Compute the largest loads by long runs, and store them (some minutes each)."""
    known = json.loads(TRUTHS.read_text(encoding="utf-8")) if TRUTHS.exists() else {}
    cases = [(kind, server, noise) for server in servers for kind in JUDGED for noise in NOISES if noise]
    cases = [each for each in cases if _name(f"{each[0]} {each[1]}", each[2]) not in known]
    with ProcessPoolExecutor(max_workers=2) as pool:
        for (kind, server, noise), loads in zip(cases, pool.map(_largest, *zip(*cases, strict=True)), strict=True):
            found = [float(f"{each:.4g}") for each in loads]
            known[_name(f"{kind} {server}", noise)] = found if len(found) > 1 else found[0]
            TRUTHS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def table(found: Sequence[tuple[float, JudgedSearch]]) -> list[str]:
    """Return the results as Markdown: a row for each kind, noise and sort of load, and all that missed."""
    searches = [each for _, each in found]
    parts = {kind: [each for each in searches if each.kind == kind] for kind in JUDGED}
    noises = {f"noise {100 * noise:g} %": [each for its, each in found if its == noise] for noise in NOISES}
    parts |= noises
    parts["open loops"] = [each for each in searches if not each.kind.startswith("closed")]
    parts["closed loops"] = [each for each in searches if each.kind.startswith("closed")]
    return [*rows(parts | {"all": searches}), "", *misses(noises)]


def _name(server: str, noise: float) -> str:
    return f"{server}, noise {100 * noise:g} %"


def _largest(kind: str, server: int, noise: float) -> list[float]:
    return noisy_case(kind, server, noise).largest_loads()


def main() -> None:
    """Print the table of searches on stored servers."""
    options = options_of(__doc__, servers=SERVERS, seeds=_SEEDS, minutes=_MINUTES)
    if options.truth:
        truths(options.servers)
        return
    known = noisy_loads()
    cases = [
        (noise, kind, server, seed)
        for noise in NOISES
        for kind in JUDGED
        for server in options.servers
        for seed in options.seeds
    ]
    trues = [known[_name(f"{kind} {server}", noise)] for noise, kind, server, _ in cases]
    noises, kinds, servers, seeds = zip(*cases, strict=True)
    with ProcessPoolExecutor(max_workers=2) as pool:
        judged = partial(judge, budget=60 * options.minutes)
        found = list(pool.map(judged, kinds, servers, seeds, trues, noises))
    lines = table(list(zip(noises, found, strict=True)))
    say("\n".join(lines))
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
