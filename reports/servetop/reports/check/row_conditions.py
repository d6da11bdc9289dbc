"""Conditions that end a row of a sweep (`until`), such as `p99_ttft_ms>500`, `goodput<95%` and `trust`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.checks.threshold_text import figure_text, key_words
from servetop.analysis.checks.thresholds import Threshold, needs_a_price, parse_cell_threshold
from servetop.analysis.summary.measured_sweep import measured_cells
from servetop.analysis.summary.summary_json import plain_object
from servetop.analysis.summary.summary_types import StageSummary
from servetop.analysis.trust.engine_times import MIN_REQUESTS
from servetop.analysis.trust.steady_state import MIN_TICKS
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.config import RunConfig
from servetop.core.errors import UsageError
from servetop.core.tick import TICK_SECONDS

TRUST, GOODPUT = "trust", "goodput"
LEAST_SECONDS = MIN_TICKS * TICK_SECONDS
"""Seconds of requests below which the trust of a cell ends no row, nor does it with fewer than MIN_REQUESTS of them."""
_SHARE = re.compile(r"\s*goodput\s*(?P<sign><=?)\s*(?P<percent>\d+(?:\.\d+)?)\s*%\s*")
_DOUBTS = (TrustVerdict.SUSPECT, TrustVerdict.CLIENT_BOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCondition:
    """A condition on the figures of one cell."""

    threshold: Threshold | None = None
    """None for the trust of the cell; one on GOODPUT is on the share of requests within the objectives, in percent."""

    def met_by(self, stage: StageSummary, objectives: Mapping[str, float]) -> str:
        """Return in words that a stage meets the condition; empty if it does not, or if the figure is not measured."""
        if self.threshold is None:
            return _doubt(stage)
        value = _share(stage, objectives) if self.threshold.key == GOODPUT else _number(stage, self.threshold)
        if value is None or not self.threshold.is_met(value):
            return ""
        return _words(self.threshold, value)


def parse_row_condition(text: str, *, objectives: bool, price: bool = False) -> RowCondition:
    """Parse a condition of `until`; UsageError says what to write if it is malformed or cannot be measured."""
    if text.strip() == TRUST:
        return RowCondition()
    try:
        found = _threshold(text)
    except UsageError as error:
        raise UsageError(f"until: {error}") from None
    if found.key == GOODPUT and not objectives:
        raise UsageError(f'until: {text!r} needs objectives: add goodput = ["ttft:500"]')
    if needs_a_price(found) and not price:
        raise UsageError(f'until: {text!r} needs what the server costs: add price = ["2.5/h"]')
    return RowCondition(threshold=found)


def parse_row_conditions(config: RunConfig) -> list[RowCondition]:
    """Parse the conditions of a run; UsageError for one that is malformed or cannot be measured."""
    objectives, price = bool(config.goodput), bool(config.prices)
    return [parse_row_condition(text, objectives=objectives, price=price) for text in config.until]


def _threshold(text: str) -> Threshold:
    share = _SHARE.fullmatch(text)
    if share is not None:
        return Threshold(key=GOODPUT, sign=share["sign"], limit=float(share["percent"]))
    if re.match(r"\s*goodput\b", text):
        raise UsageError(f"{text!r}: write a share in percent, as in goodput<95%, or request_goodput<4 for requests/s")
    if re.match(r"\s*trust\b(?!\.)", text):
        raise UsageError(f'{text!r}: write "trust" alone, or a figure of it, as in trust.slip_p99_ms>10')
    return parse_cell_threshold(text)


def row_end(stages: Sequence[StageSummary], conditions: Sequence[RowCondition], objectives: Mapping[str, float]) -> str:
    """Return why a cell ends its row: the condition that most of its repeats meet, with its load; empty if none."""
    for condition in conditions:
        met = [(words, stage) for stage in stages if (words := condition.met_by(stage, objectives))]
        if len(met) * 2 > len(stages):
            words, stage = met[-1]
            return f"{words} at {stage.label}"
    return ""


def _number(stage: StageSummary, threshold: Threshold) -> float | None:
    value = threshold.values(plain_object(stage))[None]
    return None if value is None else float(value)


def _share(stage: StageSummary, objectives: Mapping[str, float]) -> float | None:
    """Return the requests within the objectives in percent."""
    cells = measured_cells([stage], objectives=objectives)
    share = cells[0].share_within if cells else None
    return None if share is None else share * 100


def _doubt(stage: StageSummary) -> str:
    requests, trust = stage.measured.requests, stage.measured.trust
    enough = requests.completed >= MIN_REQUESTS and requests.duration >= LEAST_SECONDS
    if trust.verdict not in _DOUBTS or not enough:
        return ""
    return f"trust {trust.verdict} ({trust.reasons[0]})" if trust.reasons else f"trust {trust.verdict}"


def _words(threshold: Threshold, value: float) -> str:
    key, unit = (GOODPUT, " %") if threshold.key == GOODPUT else key_words(threshold.key)
    return f"{key} {figure_text(value, threshold.limit)}{unit} {threshold.sign} {threshold.limit:,g}{unit}"
