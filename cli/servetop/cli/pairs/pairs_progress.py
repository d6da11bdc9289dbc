"""The progress of a series of pairs on stderr: a line when a run begins, and one for each pair."""

from __future__ import annotations

from pathlib import Path

from servetop.analysis.comparison.difference_texts import difference_text, duration_text, interval_text
from servetop.analysis.comparison.paired_runs import paired_difference
from servetop.run import console
from servetop.run.pairs.pair_series import SeriesPlan, SeriesState

_FEWEST_FOR_INTERVAL = 3
"""Pairs below which the interval is too wide to mean anything."""


class PairsProgress:
    """Prints what a series does."""

    def __init__(self, plan: SeriesPlan) -> None:
        self._plan = plan

    def run_begins(self, pair: int, arm: str, *, seed: int, recording: Path) -> None:
        """Name the run and its recording."""
        console.status(f"pair {pair} · {arm.upper()} · seed {seed} · {recording}")

    def run_discarded(self, recording: Path | None, *, reason: str, again: bool) -> None:
        """Print why a run does not count."""
        kept = "" if recording is None else f" ({recording})"
        console.status(f"this run does not count: {reason}{kept}{': repeating it' if again else ''}")

    def pair_measured(self, state: SeriesState) -> None:
        """Print what is known, and what is left."""
        console.status(progress_line(state, budget=self._plan.budget))


def progress_line(state: SeriesState, *, budget: float) -> str:
    """Return one line: pairs, the first metric without an answer (or the first one), and the time left."""
    still_open = state.open_metrics
    parts = [_pairs(state)]
    if state.metrics:
        shown = still_open[0] if still_open else state.metrics[0]
        several = len({each.load for each in state.metrics}) > 1
        name = f"{shown.metric.title}{f' at {shown.load.label}' if several else ''}"
        found = paired_difference(shown)
        known = interval_text(found) if state.pairs >= _FEWEST_FOR_INTERVAL and found.high is not None else ""
        parts.append(f"{name} {difference_text(found)} {known}".rstrip())
        if len(state.metrics) > 1:
            parts.append(f"{len(state.metrics) - len(still_open)} of {len(state.metrics)} answered")
    parts.append(f"{duration_text(state.seconds_left(budget))} left" if still_open else "done")
    return " · ".join(parts)


def _pairs(state: SeriesState) -> str:
    if not state.open_metrics:
        return f"pair {state.pairs}"
    expected = state.expected_pairs
    return f"pair {state.pairs}" + ("" if expected is None else f" of about {expected}")
