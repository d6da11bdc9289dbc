"""How a search ends: with the exit code, the headline and the last state that its answers deserve."""

from __future__ import annotations

from dataclasses import replace

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.events import RunEnd
from servetop.core.interfaces.search_state import SearchState
from servetop.recordings.read.reader import RecordingReader
from servetop.run.search.answer_text import subject_of
from servetop.run.search.search_setup import SearchSetup


def searched_end(reader: RecordingReader, summary: RunSummary | None, end: RunEnd) -> tuple[RunEnd, str, SearchState]:
    """Return the end of the run of a search, its headline (the answer as far as it is known), and its last state."""
    from servetop.reports.summary.summary import run_summary
    from servetop.run.search.answer_line import answer_line
    from servetop.run.search.search_result import search_result  # not for other runs
    from servetop.run.search.search_states import SearchStates

    setup = SearchSetup.of(reader.header.config)
    evidence = setup.evidence(reader)
    result = search_result(reader, summary or run_summary(reader, end=end), end=end, setup=setup, evidence=evidence)
    handed = setup.search.since is not None  # the run ends as it would without the search
    found = end if handed else RunEnd(at=end.at, exit_code=result.exit_code, reason=result.error or end.reason)
    answers = setup.planner.answers(evidence)
    state = SearchStates(setup).state(evidence, answers, at=end.at, subject=subject_of(reader.header), probe=None)
    texts = (answer_line(result, tier) for tier in result.tiers)
    lines = tuple(replace(each, text=text) for each, text in zip(state.answers, texts, strict=True))
    return found, "; ".join(tier.text for tier in result.tiers), replace(state, answers=lines)
