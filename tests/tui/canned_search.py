"""A canned search: decisions over 100 s, with an interval that becomes narrower until it is confirmed."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

from servetop.core.config_values.search_config import SearchConfig
from servetop.core.interfaces.search_state import (
    LoadFigure,
    SearchedAnswer,
    SearchedLoad,
    SearchedObjective,
    SearchState,
)

SEARCH = SearchConfig(slo=("p90_ttft<500ms, p99_itl<50ms",), low=1.0, high=100.0, budget=120.0)
OBJECTIVES = (
    SearchedObjective(label="p90 TTFT ≤ 500 ms", allowed=0.1),
    SearchedObjective(label="p99 ITL ≤ 50 ms", allowed=0.01),
)
PRINTED = "vLLM with llama serves 14.5 req/s [13.9, 15.2] within p90 TTFT ≤ 500 ms, p99 ITL ≤ 50 ms"


def figure(counted: float, missed: float, low: float, high: float, verdict: str) -> LoadFigure:
    return LoadFigure(counted=counted, missed=missed, low=low, high=high, verdict=verdict)


def load(number: int, rate: float, since: float, *figures: LoadFigure, **changes: Any) -> SearchedLoad:
    given = SearchedLoad(number=number, load=rate, begin=since, end=since + 15.0, purpose="measure", figures=figures)
    return dataclasses.replace(given, **changes)


def answer(low: float | None, high: float | None, *, text: str = "so far", **changes: Any) -> SearchedAnswer:
    middle = None if low is None or high is None else (low + high) / 2
    given = SearchedAnswer(slo=SEARCH.slo[0], kind="wide", load=middle, low=low, high=high, binding=0, text=text)
    return dataclasses.replace(given, **changes)


def state(
    at: float, following: float | None, found: SearchedAnswer, *loads: SearchedLoad, **changes: Any
) -> SearchState:
    given = SearchState(
        at=at, seconds_left=120.0 - at, load=following, purpose="" if following is None else "measure",
        objectives=OBJECTIVES, answers=(found,), loads=loads,
    )  # fmt: skip
    return dataclasses.replace(given, **changes)


FOUR = load(0, 4.0, 0.0, figure(60, 0, 0, 0.06, "kept"), figure(1800, 2, 0, 0.02, "open"))
TWENTY = load(1, 20.0, 15.0, figure(300, 240, 0.6, 0.9, "missed"), figure(9000, 300, 0.01, 0.06, "open"), queue="grows")
IDLE = load(2, 7.0, 30.0, purpose="recover")
FOURTEEN = load(3, 14.0, 45.0, figure(210, 17, 0.05, 0.13, "open"), figure(6300, 10, 0, 0.006, "kept"))
AGAIN = load(4, 13.9, 60.0, figure(208, 12, 0.02, 0.09, "kept"), figure(6200, 6, 0, 0.004, "kept"), purpose="confirm")
STATES = (
    state(0.0, 4.0, answer(None, None, binding=None), reason="the first load"),
    state(15.0, 20.0, answer(4.0, None), FOUR, reason="no load was too high yet"),
    state(30.0, 7.0, answer(6.0, 20.0), TWENTY, purpose="recover", reason="until the backlog of 88 requests is gone"),
    state(45.0, 14.0, answer(6.0, 19.0), IDLE, reason="35 % likely to be too high"),
    state(60.0, 13.9, answer(13.9, 15.2), FOURTEEN, purpose="confirm", reason="to confirm the answer"),
    state(75.0, None, answer(13.9, 15.2, kind="found", text=PRINTED), FOUR, TWENTY, IDLE, FOURTEEN, AGAIN),
)


def searched(canned: ModuleType, **changes: Any) -> Any:
    """A run of the canned server that is a search, with these decisions."""
    run = canned.finished()
    run.config = dataclasses.replace(run.config, search=SEARCH)
    return dataclasses.replace(run, search_states=STATES, **changes)
