"""What a search found, in words: the same in the progress, in the answer and in the summary."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.config_values.search_config import SearchConfig
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.run.search.objective_text import ERROR_RATE, objective_label
from servetop.run.search.search_answer import QUEUE, AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe

UNKNOWN = "not known yet"


def load_number(load: float, search: SearchConfig) -> str:
    """Return a load without its unit."""
    return f"{load:,.0f}" if search.concurrency else formats.rate_number(load)


def load_text(load: float, search: SearchConfig) -> str:
    """Return a load: `11.2 req/s`, `48 in flight`."""
    return f"{load_number(load, search)} {load_unit(search)}"


def load_unit(search: SearchConfig) -> str:
    """Return the unit of a load."""
    return "in flight" if search.concurrency else "req/s"


def prior_text(search: SearchConfig) -> str:
    """Return the load that is expected, or was there before, as the beginning of a sentence; empty without one."""
    if search.prior is None:
        return ""
    load = load_text(search.prior, search)
    return f"about {load} expected, so " if search.since is None else f"the load was {load}: "


def interval_text(answer: TierAnswer, search: SearchConfig) -> str:
    """Return the interval of an answer during a search: `6.1 to 13 req/s`, `above 80 req/s`."""
    if answer.drift is not None:
        return f"none: the server became {answer.drift.direction}"
    low, high = max(answer.low, search.low), min(answer.high, search.high)
    if answer.low <= search.low and answer.high >= search.high:
        return UNKNOWN
    if answer.high >= search.high:
        return f"above {load_text(low, search)}"
    if answer.low <= search.low:
        return f"below {load_text(high, search)}"
    return f"{load_number(low, search)} to {load_text(high, search)}"


def seen_text(evidence: Evidence, objectives: Sequence[LoadObjective], *, probe: Probe) -> str:
    """Return how much of each objective was kept by the requests that were due during a probe."""
    return ", ".join(
        f"{objective_label(each)}: {figure_text(each, seen_figure(evidence, index, probe=probe, objective=each))}"
        for index, each in enumerate(objectives)
    )


def seen_figure(evidence: Evidence, index: int, *, probe: Probe, objective: LoadObjective) -> float:
    """Return the share of samples beyond the limit, or for an objective on a mean that in seconds; NaN if unknown.

    It is of all requests that were due during the probe.
    """
    due = (evidence.due >= probe.begin) & (evidence.due < probe.end)
    totals = evidence.sums if objective.mean else evidence.missed
    counts, total = float(evidence.counted[index][due].sum()), float(totals[index][due].sum())
    return total / counts if counts else math.nan


def is_kept(objective: LoadObjective, figure: float) -> bool:
    """Whether a share of missed samples, or a mean in seconds, is within its objective; True if it is unknown."""
    return math.isnan(figure) or figure <= objective.most


def figure_text(objective: LoadObjective, figure: float) -> str:
    """Return a share of missed samples, or a mean in seconds, in words."""
    if objective.mean and not math.isnan(figure):
        return formats.seconds(figure, prose=True)
    return share_text(objective, figure)


def share_text(objective: LoadObjective, missed: float) -> str:
    """Return a share of missed samples in words."""
    if math.isnan(missed):
        return "no sample yet"
    if objective.metric == ERROR_RATE:
        return f"{formats.percent(missed, zeros='never')} failed"
    return f"{formats.percent(1 - missed, zeros='never')} within"


def answer_sentence(subject: str, answer: TierAnswer, objectives: Sequence[LoadObjective], search: SearchConfig) -> str:
    """Return the answer of one tier as a sentence without its full stop; `subject` is the engine."""
    within = f"within {', '.join(map(objective_label, objectives))}"
    match answer.kind:
        case AnswerKind.ABOVE:
            least, most = load_text(answer.low, search), load_text(search.high, search)
            if answer.low < search.high:
                return f"{subject} serves ≥ {least} {within}: perhaps {most} too, the largest load allowed"
            return f"{subject} serves ≥ {most} {within}: the largest load allowed is within the objectives"
        case AnswerKind.BELOW:
            least = load_text(search.low, search)
            return f"{subject} does not serve {least} {within}: the least load allowed is beyond the objectives"
        case AnswerKind.CLIFF:
            ends = f"{load_number(answer.low, search)} and {load_text(answer.high, search)}"
            return f"{subject} serves {load_text(answer.low, search)} {within}: cliff between {ends}"
        case AnswerKind.DRIFTED if answer.drift is not None:
            return f"{subject} became {answer.drift.direction} during the search: {_drift(answer, objectives, search)}"
        case AnswerKind.WIDE:
            return f"the load of {subject} {within} is not resolved: {_not_resolved(answer, search)}"
    ends = f"[{load_number(answer.low, search)}, {load_number(answer.high, search)}]"
    return f"{subject} serves {load_text(answer.load or answer.low, search)} {ends} {within}"


def _drift(answer: TierAnswer, objectives: Sequence[LoadObjective], search: SearchConfig) -> str:
    """Return the load at which a drift shows, with what was seen there earlier and later."""
    found = answer.drift
    assert found is not None
    load, since = load_text(found.load, search), formats.clock(found.since)
    objective = next(each for each in objectives if each.text == answer.binding)
    earlier, later = share_text(objective, found.earlier), share_text(objective, found.later)
    return f"around {load}, {objective_label(objective)}: {earlier} before {since}, {later} since"


def with_binding(sentence: str, answer: TierAnswer, objectives: Sequence[LoadObjective]) -> str:
    """Return the sentence of an answer with what sets the load in brackets, if anything does."""
    binding = binding_text(answer, objectives)
    return f"{sentence} ({binding})" if binding else sentence


def restart_text(evidence: Evidence) -> str:
    """Return that the server restarted, and what no longer counts; empty if nothing was measured before."""
    if evidence.restarted_at is None:
        return ""
    seconds = formats.clock(round(sum(probe.end - probe.begin for probe in evidence.earlier)))
    earlier = f"{counted(len(evidence.earlier), 'probe')}, {seconds} of load"
    return f"the server restarted at {formats.clock(evidence.restarted_at)}: nothing before that counts ({earlier})"


def others_text(evidence: Evidence) -> str:
    """Return that other clients use the server, with their share and what to do; empty if none is known."""
    if evidence.others is None:
        return ""
    share = formats.percent(evidence.others, zeros="never")
    return f"{share} of the requests at the server are not from this search: search again when no other client uses it"


def subject_of(header: RunHeader) -> str:
    """Return the beginning of the sentences: the engine, and its model if it has one."""
    facts, config = header.engine, header.config.engine
    engine = config.known_as if facts is None else facts.title
    model = config.model if facts is None else facts.model or config.model
    return f"{engine} with {model}" if model else engine


def _not_resolved(answer: TierAnswer, search: SearchConfig) -> str:
    interval = interval_text(answer, search)
    if interval == UNKNOWN:
        return "nothing is known yet"
    if answer.minutes_left is None:
        return interval
    return f"{interval}; about {counted(max(1, math.ceil(answer.minutes_left)), 'more minute')} would"


def binding_text(answer: TierAnswer, objectives: Sequence[LoadObjective]) -> str:
    """Return what sets the load; empty if nothing does, or if it is not known yet."""
    if answer.kind in (AnswerKind.WIDE, AnswerKind.DRIFTED):
        return ""
    if answer.binding == QUEUE:
        return "the queue grows above it"
    found = next((each for each in objectives if each.text == answer.binding), None)
    if found is None:
        return ""
    return f"{objective_label(found)} is missed {'at it' if answer.kind is AnswerKind.BELOW else 'above it'}"
