"""Judges searches that were killed and resumed: `python -m tests.judgement.judge_search_kills`."""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.recordings.read.reader import RecordingReader
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, Purpose
from servetop.run.search.search_setup import SearchSetup
from tests.judgement.judge_search import largest_loads
from tests.judgement.recorded_search import Cut, continue_search, cuts_of, record_search, remove_recording
from tests.judgement.report_page import say, share_text, write_between_marks
from tests.judgement.searched_servers import KINDS, LargestLoad, draw_case

MARK = "<!-- make judge-search-kills -->"
"""Encloses the table in the page."""
LONGEST_PROBE = 60.0
"""Seconds by which a search may exceed its budget: it ends after a load, not within one."""
_TICKS_PER_SECOND = 4
_HEAD = (
    "server",
    "kills",
    "evidence kept",
    "a load paid twice",
    "intervals overlap",
    "kind of answer agrees",
    "interval covers, killed / whole",
    "answers differ by, median / most",
    "minutes, killed / whole",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a recording of a search says."""

    answer: TierAnswer
    evidence: Evidence
    now: float
    """Seconds of load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedKill:
    """One search that was killed and resumed, beside the same search without an interruption."""

    kind: str
    server: int
    cut: Cut
    purpose: str
    """Of the load that was kept when it was killed; empty before the first."""
    true: LargestLoad
    killed: TierAnswer
    whole: TierAnswer
    kept: bool
    """Whether every request that had ended before counts once, as it did without the kill."""
    repeated: int
    """Loads that had been left, outside the interval as of the kill, and were measured again."""
    seconds: float
    whole_seconds: float
    budget: float

    @property
    def overlaps(self) -> bool:
        """Whether the intervals have loads in common."""
        return self.killed.low <= self.whole.high and self.whole.low <= self.killed.high

    @property
    def agrees(self) -> bool:
        """Whether both answers are of the same kind; if the budget left one of them wide, the other has a load."""
        kinds = {self.killed.kind, self.whole.kind}
        return len(kinds) == 1 or (AnswerKind.WIDE in kinds and kinds <= _LOADS)

    @property
    def in_budget(self) -> bool:
        """Whether all sessions together kept the budget."""
        return self.seconds <= self.budget + LONGEST_PROBE

    @property
    def difference(self) -> float:
        """How far the answers are apart, relative; NaN if one of them has no load."""
        if self.killed.load is None or self.whole.load is None:
            return math.nan
        return abs(math.log(self.killed.load / self.whole.load))

    @property
    def right(self) -> bool:
        """Whether it counts as the same answer."""
        return self.kept and not self.repeated and self.overlaps and self.agrees and self.in_budget


_LOADS = {AnswerKind.FOUND, AnswerKind.CLIFF, AnswerKind.WIDE}


def found_in(path: Path) -> Found:
    """Return the answer and the evidence of a recording."""
    with contextlib.closing(RecordingReader.open(path)) as reader:
        setup = SearchSetup.of(reader.header.config)
        evidence = setup.evidence(reader)
    (answer,) = setup.planner.answers(evidence)
    return Found(answer=answer, evidence=evidence, now=evidence.seconds)


def ended_until(evidence: Evidence, at: float) -> FloatArray:
    """Return due, end, counted and missed samples of the requests that ended by a time; shape (4, requests)."""
    rows = np.stack((evidence.due, evidence.done, evidence.counted[0], evidence.missed[0]))
    rows = rows[:, evidence.done <= at]
    return np.asarray(rows[:, np.lexsort(rows)])


def repeated_loads(before: Found, after: Evidence) -> int:
    """Count the loads that a resumed search measured again though they had been left and could not be the answer."""
    probes = [probe.load for probe in before.evidence.probes if probe.purpose is Purpose.MEASURE]
    low, high = before.answer.low, before.answer.high
    left = {load for load in probes[:-1] if load != probes[-1] and not low <= load <= high}
    later = after.probes[len(before.evidence.probes) :]
    return sum(probe.load in left for probe in later if probe.purpose is Purpose.MEASURE)


def judge_kills(kind: str, server: int, seed: int, *, budget: float, kills: int, true: LargestLoad) -> list[JudgedKill]:
    """Record one search, and resume it from as many moments."""
    case = draw_case(kind, server)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.servetop"
        drawn = cuts_of(seed, count=kills, ticks=round(budget * _TICKS_PER_SECOND))
        cuts = {Path(folder) / f"{cut.tick}.servetop": cut for cut in drawn}
        writer = get_context("spawn").Process(
            target=record_search, args=(path, case), kwargs={"seed": seed, "budget": budget, "cuts": cuts}
        )
        writer.start()  # a process of its own: the copies are those of a writer that is dead
        writer.join()
        whole, judged = found_in(path), []
        for target, cut in cuts.items():
            if not target.exists():
                continue  # the search ended before
            before = found_in(target)
            continue_search(target, case, seed=seed + 1000 + cut.tick)
            after = found_in(target)
            until = before.evidence.probes[-1].end if before.evidence.probes else 0.0
            judged.append(
                JudgedKill(
                    kind=kind,
                    server=server,
                    cut=cut,
                    purpose=str(before.evidence.probes[-1].purpose) if before.evidence.probes else "",
                    true=true,
                    killed=after.answer,
                    whole=whole.answer,
                    kept=np.array_equal(ended_until(after.evidence, until), ended_until(whole.evidence, until)),
                    repeated=repeated_loads(before, after.evidence),
                    seconds=after.now,
                    whole_seconds=whole.now,
                    budget=budget,
                )
            )
            remove_recording(target)
    return judged


def table(found: Sequence[JudgedKill]) -> list[str]:
    """Return the results as Markdown: a row for each kind, and every kill after which the answer is another one."""
    rows = [f"| {' | '.join(_HEAD)} |", "|---" * len(_HEAD) + "|"]
    for kind in [*KINDS, ""]:
        rows += [_row(kind or "all", [each for each in found if kind in ("", each.kind)])]
    wrong = [each for each in found if not each.right]
    within = sum(each.cut.within is not None for each in found)
    purposes = {name: sum(each.purpose == name for each in found) for name in sorted({each.purpose for each in found})}
    while_kept = ", ".join(f"{count} in `{name}`" for name, count in purposes.items() if name)
    return [
        *rows,
        "",
        f"Of the kills, {within} were within a transaction. Loads that were kept then: {while_kept}; "
        f"none was recorded yet in {purposes.get('', 0)}.",
        "",
        "Kills after which the answer is not the same:" if wrong else "After every kill the answer is the same.",
        *(["", *map(_result, wrong)] if wrong else []),
    ]


def _row(name: str, found: Sequence[JudgedKill]) -> str:
    if not found:
        return f"| {name} | 0 {'| – ' * (len(_HEAD) - 2)}|"
    apart = [each.difference for each in found if not math.isnan(each.difference)]
    cells = [
        str(len(found)),
        share_text([each.kept for each in found]),
        str(sum(each.repeated > 0 for each in found)),
        share_text([each.overlaps for each in found]),
        share_text([each.agrees for each in found]),
        f"{share_text([_covers(each.killed, each.true) for each in found])} / "
        f"{share_text([_covers(each.whole, each.true) for each in found])}",
        f"{100 * statistics.median(apart):.0f} % / {100 * max(apart):.0f} %" if apart else "–",
        f"{statistics.median(each.seconds for each in found) / 60:.1f} / "
        f"{statistics.median(each.whole_seconds for each in found) / 60:.1f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _covers(answer: TierAnswer, true: LargestLoad) -> bool:
    return true.is_in(answer.low, answer.high)


def _result(each: JudgedKill) -> str:
    why = [
        text
        for wrong, text in (
            (not each.kept, "requests are missing or count twice"),
            (each.repeated > 0, f"{each.repeated} loads measured again"),
            (not each.overlaps, "no load in common"),
            (not each.agrees, f"{each.killed.kind} in place of {each.whole.kind}"),
            (not each.in_budget, f"{each.seconds:.0f} s of {each.budget:.0f} s"),
        )
        if wrong
    ]
    torn = "" if each.cut.within is None else ", within a transaction"
    at = f"{each.kind} {each.server}, killed at {each.cut.tick / _TICKS_PER_SECOND:.2f} s{torn}"
    return f"- {at}: {_interval(each.killed)}, whole {_interval(each.whole)}; {'; '.join(why) or 'the same answer'}"


def _interval(answer: TierAnswer) -> str:
    return f"[{answer.low:.3g}, {answer.high:.3g}]"


def main() -> None:
    """Print the table of searches that were killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=[21, 22])
    parser.add_argument("--seed", type=int, default=301, help="of the arrivals and of the moments")
    parser.add_argument("--kills", type=int, default=10, help="moments drawn for each search")
    parser.add_argument("--minutes", type=float, default=5.0, help="budget of a search")
    parser.add_argument("--workers", type=int, default=2, help="searches at once")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    options = parser.parse_args()
    known = largest_loads()
    cases = [(kind, server) for server in options.servers for kind in KINDS]
    found: list[JudgedKill] = []
    with ProcessPoolExecutor(max_workers=options.workers) as pool:
        waiting = [
            pool.submit(
                judge_kills,
                *case,
                options.seed + number,
                budget=60 * options.minutes,
                kills=options.kills,
                true=known[f"{case[0]} {case[1]}"],
            )
            for number, case in enumerate(cases)
        ]
        for each in waiting:
            found += each.result()
            say("\n".join(map(_result, found[-len(each.result()) :])))
    lines = table(found)
    say("\n".join(lines))
    if options.report is not None:
        write_between_marks(options.report, lines, mark=MARK)


if __name__ == "__main__":
    main()
