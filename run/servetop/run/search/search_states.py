"""What a search knows at a decision, as it is recorded: its answers, and the loads whose figures have changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

import numpy as np

from servetop.core.interfaces.search_state import (
    LoadFigure,
    SearchedAnswer,
    SearchedLoad,
    SearchedObjective,
    SearchState,
)
from servetop.run.search.answer_text import answer_sentence, others_text, restart_text, with_binding
from servetop.run.search.load_posterior import share_interval
from servetop.run.search.load_windows import LoadWindow, latencies_in, merged, windows
from servetop.run.search.mean_posterior import MEAN_DEPENDENCE
from servetop.run.search.objective_text import objective_label
from servetop.run.search.queue_windows import queue_windows
from servetop.run.search.search_answer import TierAnswer
from servetop.run.search.search_evidence import Evidence, LoadObjective, NextProbe, Probe, Purpose
from servetop.run.search.search_plan import LONGEST_RISE
from servetop.run.search.search_setup import SearchSetup
from servetop.run.search.tier_posterior import is_missed
from servetop.run.search.window_mean import WindowMean, window_mean

KEPT, MISSED, OPEN = "kept", "missed", "open"
"""Verdicts on one load by one objective."""
GROWS = "grows"


class SearchStates:
    """Makes the states of one session; each has only the loads that changed since the one before."""

    def __init__(self, setup: SearchSetup) -> None:
        self._setup = setup
        self._known: dict[int, SearchedLoad] = {}

    def state(
        self, evidence: Evidence, answers: Sequence[TierAnswer], *, at: float, subject: str, probe: NextProbe | None
    ) -> SearchState:
        """Return the state before `probe`, or at the end; `subject` is the engine in the sentences of the answers."""
        loads = searched_loads(evidence, self._setup)
        changed = tuple(each for each in loads if self._known.get(each.number) != each)
        self._known = {each.number: each for each in loads}
        return SearchState(
            at=at,
            seconds_left=max(0.0, self._setup.search.budget - evidence.seconds),
            load=None if probe is None else self._setup.load(probe),
            purpose="" if probe is None else str(probe.purpose),
            reason="" if probe is None else probe.reason,
            objectives=tuple(
                SearchedObjective(
                    label=objective_label(each), allowed=each.allowed, mean_limit=each.limit if each.mean else None
                )
                for each in self._setup.tiers.objectives
            ),
            answers=searched_answers(self._setup, answers, subject=subject),
            loads=changed,
            note="; ".join(filter(None, [restart_text(evidence), others_text(evidence)])),
        )


def searched_answers(setup: SearchSetup, answers: Sequence[TierAnswer], *, subject: str) -> tuple[SearchedAnswer, ...]:
    """Return the answers of all tiers as they are recorded."""
    objectives = setup.tiers.objectives
    places = {each.text: place for place, each in enumerate(objectives)}
    found = []
    for slo, members, answer in zip(setup.search.slo, setup.tiers.members, answers, strict=True):
        within = [objectives[index] for index in members]
        text = answer_sentence(subject, answer, within, setup.search)
        found.append(
            SearchedAnswer(
                slo=slo,
                kind=str(answer.kind),
                load=answer.load,
                low=answer.low if answer.low > 0 else None,
                high=answer.high if math.isfinite(answer.high) else None,
                binding=places.get(answer.binding),
                text=with_binding(text, answer, within),
            )
        )
    return tuple(found)


def searched_loads(evidence: Evidence, setup: SearchSetup) -> list[SearchedLoad]:
    """Return all loads that were kept, in order of time, with what each showed."""
    found: list[SearchedLoad] = []
    for _, probes in groupby((*evidence.earlier, *evidence.probes), key=attrgetter("restarts")):
        found += _of_one_server(evidence, setup, merged(tuple(probes), purposes=tuple(Purpose)), first=len(found))
    return found


def _of_one_server(
    evidence: Evidence, setup: SearchSetup, probes: Sequence[Probe], *, first: int
) -> Iterator[SearchedLoad]:
    """Yield the loads between two restarts, numbered from `first`."""
    seen = [probe for probe in probes if probe.purpose is not Purpose.RECOVER]
    views = [
        windows(evidence, index, probes=seen, concurrency=setup.search.concurrency)
        for index in range(len(setup.tiers.objectives))
    ]
    figures = [
        _figures(evidence, index, views[index], probes=seen, objective=objective)
        for index, objective in enumerate(setup.tiers.objectives)
    ]
    growing = set()
    if not setup.search.concurrency and views:
        queues = queue_windows(views[0], longest=LONGEST_RISE)
        growing = {probe.begin for probe, queue in zip(seen, queues, strict=True) if queue.missed}
    by_begin = {probe.begin: tuple(each[place] for each in figures) for place, probe in enumerate(seen)}
    for number, probe in enumerate(probes, start=first):
        yield SearchedLoad(
            number=number,
            load=probe.load,
            begin=probe.begin,
            end=probe.end,
            purpose=str(probe.purpose),
            queue=GROWS if probe.begin in growing else "",
            figures=by_begin.get(probe.begin, ()),
        )


def _figures(
    evidence: Evidence, index: int, view: Sequence[LoadWindow], *, probes: Sequence[Probe], objective: LoadObjective
) -> list[LoadFigure]:
    """Return the figures of one objective; of a confirmation those of all of its requests, as the answer has them."""
    found = []
    for place, probe in enumerate(probes):
        window = view[place]
        if probe.purpose is Purpose.CONFIRM:
            due = slice(*np.searchsorted(evidence.due, (probe.begin, probe.end)))
            counted, missed = (each[index][due] for each in (evidence.counted, evidence.missed))
            latencies = latencies_in(probe.end - probe.begin, window.latency)
            mean = window_mean(counted, evidence.sums[index][due], latencies=latencies) if objective.mean else None
            window = replace(window, counted=float(counted.sum()), missed=float(missed.sum()), mean=mean)
        low, high = _interval(view, place, objective, mean=window.mean)
        found.append(
            LoadFigure(
                counted=window.counted,
                missed=window.missed,
                low=low,
                high=high,
                verdict=_verdict(window, objective, (low, high), confirms=probe.purpose is Purpose.CONFIRM),
                mean=None if window.mean is None else window.mean.value,
            )
        )
    return found


def _interval(
    view: Sequence[LoadWindow], place: int, objective: LoadObjective, *, mean: WindowMean | None
) -> tuple[float, float]:
    """Return the 95 % interval of the mean in seconds, or of the share of missed samples."""
    if objective.mean:
        return (0.0, math.inf) if mean is None else mean.interval(MEAN_DEPENDENCE)
    return share_interval(view, place, allowed=objective.allowed)


def _verdict(window: LoadWindow, objective: LoadObjective, interval: tuple[float, float], *, confirms: bool) -> str:
    """Return whether a load is within an objective: a confirmation by its figure, others by their interval."""
    if not window.counted:
        return OPEN
    if confirms:
        return MISSED if is_missed(window, objective) else KEPT
    return KEPT if interval[1] <= objective.most else MISSED if interval[0] > objective.most else OPEN
