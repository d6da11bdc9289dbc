"""Judges watches of simulated servers whose truth is known: `python -m tests.judgement.judge_watch [--seed N]`."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.judgement.judged import ONSET_WITHIN
from tests.judgement.judging import count_text, mean_text, share_text
from tests.judgement.kinds import KINDS, WATCHED, each_scenario
from tests.judgement.report_page import say, write_between_marks
from tests.judgement.watch_scores import Judged, WatchScore, watch_score

MARK = "<!-- make judge-watch -->"
"""Encloses the figures in the page."""
ONSET_NEAR = 5.0
"""Seconds."""
_OFTEN_RIGHT = 0.9
"""Fraction of the seconds in which the verdict of now must be right, for a run that is no miss."""


def main(argv: Sequence[str]) -> int:
    """Judge the scenarios of all seeds, and print or write the figures."""
    options = parsed(argv)
    scores = []
    for seed in options.seed:
        for scenario in each_scenario(seed, kinds=options.kind or (*KINDS, *WATCHED)):
            scores.append(watch_score(scenario))
            say(f"{scenario.name:24} {scores[-1].headline:60} {'' if scores[-1].watch.right else 'WRONG'}")
    lines = [f"Seeds {', '.join(map(str, options.seed))}: {len(scores)} runs.", "", *watch_report(scores)]
    say("\n".join(lines))
    if options.report:
        write_between_marks(options.report, lines, mark=MARK)
    return 0


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.judge_watch", description=__doc__)
    parser.add_argument(
        "--seed", type=int, nargs="+", default=[401, 402, 403], help="what the scenarios are drawn from"
    )
    parser.add_argument(
        "--kind", action="append", default=[], choices=[*KINDS, *WATCHED], help="only this kind; repeat"
    )
    parser.add_argument("--report", type=Path, help="write the figures into this page, between its marks")
    return parser.parse_args(argv)


def watch_report(scores: Sequence[WatchScore]) -> list[str]:
    """The tables of the page, in Markdown."""
    kinds = list(dict.fromkeys(each.kind for each in scores))
    groups = [(kind, [each for each in scores if each.kind == kind]) for kind in kinds]
    groups.append(("**all**", list(scores)))
    pairs = ("right", "onset within 2 s", "onset within 5 s", "right now", "changes")
    titles = ["scenarios", "runs", *(f"{name}: {by}" for name in pairs for by in ("watch", "run")), "reported after"]
    return [
        f"| {' | '.join(titles)} |",
        f"|---|{'---:|' * (len(titles) - 1)}",
        *(_row(name, group) for name, group in groups),
        "",
        "| false alarms | runs | share of their seconds |",
        "|---|---:|---:|",
        _alarm_row("watch, healthy", [each.watch for each in scores if each.healthy]),
        _alarm_row("run, healthy", [each.run for each in scores if each.healthy and each.run]),
        _alarm_row("watch, only clients fail", [each.watch for each in scores if each.clients_fail]),
        "",
        *_misses(scores),
    ]


def _row(name: str, scores: Sequence[WatchScore]) -> str:
    reported = [each.reported_after for each in scores if not math.isnan(each.reported_after)]
    watches, runs = [each.watch for each in scores], [each.run for each in scores if each.run]
    cells: list[str] = [name, str(len(scores))]
    for judged in (watches, runs):
        cells.append(share_text(each.right for each in judged))
    for limit in (ONSET_WITHIN, ONSET_NEAR):
        cells += [_onsets(judged, limit) for judged in (watches, runs)]
    cells += [mean_text(each.right_now for each in judged) for judged in (watches, runs)]
    cells += [count_text(each.changes for each in judged if _acts(each)) for judged in (watches, runs)]
    cells.append(f"{statistics.median(reported):.1f} s" if reported else "–")
    return f"| {' | '.join(cells)} |"


def _acts(judged: Judged) -> bool:
    return not math.isnan(judged.right_now)


def _onsets(judged: Iterable[Judged], limit: float) -> str:
    return share_text(abs(each.onset_error) <= limit for each in judged if not math.isnan(each.onset_error))


def _alarm_row(name: str, judged: Sequence[Judged]) -> str:
    wrong = sum(not each.right for each in judged)
    return f"| {name} | {wrong} of {len(judged)} | {mean_text(each.alarms for each in judged)} |"


def _misses(scores: Iterable[WatchScore]) -> list[str]:
    """One line for each run of which the watch said something wrong, or said it late."""
    lines = []
    for each in scores:
        judged = each.watch
        wrong = [] if judged.right else [f"summary: {each.headline}"]
        wrong += [f"onset {judged.onset_error:+.1f} s"] if abs(judged.onset_error) > ONSET_WITHIN else []
        wrong += [f"right now {judged.right_now:.0%}"] if judged.right_now < _OFTEN_RIGHT else []
        wrong += ["no episode reported"] if each.expected and math.isnan(each.reported_after) else []
        wrong += [f"alarms {judged.alarms:.1%} of the time"] if judged.alarms > 0 else []
        lines += [f"- {each.name}: {'; '.join(wrong)}"] if wrong else []
    return ["Misses of the watch:", "", *lines] if lines else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
