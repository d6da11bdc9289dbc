"""A server drifted if its later loads contradict the earlier ones beyond their errors, in one direction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from servetop.core.config_values.search_config import SearchConfig
from servetop.run.search.answer_text import answer_sentence, binding_text, interval_text
from servetop.run.search.drift import Drift, drift
from servetop.run.search.load_windows import LoadWindow, Trend
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import LoadObjective, Purpose, SearchLimits
from servetop.run.search.search_plan import SearchPlan
from tests.run.search.made_evidence import Kept, evidence_of

OBJECTIVE = LoadObjective(text="p90_ttft<500ms", metric="ttft", limit=0.5, share=0.9)
SEARCH = SearchConfig(slo=(OBJECTIVE.text,), low=0.1, high=1000.0, budget=600.0)


def view(*shares: tuple[float, float], seconds: float = 30.0, counted: float = 300.0) -> list[LoadWindow]:
    """Windows one after the other from (load, share of misses), whose misses come one at a time."""
    return [
        LoadWindow(
            load=load, begin=begin - seconds, seconds=seconds, counted=counted, missed=share * counted,
            events=(1.0,) * round(share * counted), trend=Trend.SETTLED, in_flight=load, reached=load, latency=0.01,
        )
        for (load, share), begin in zip(shares, accumulate([seconds] * len(shares)), strict=True)
    ]  # fmt: skip


def found(shares: Sequence[tuple[float, float]]) -> Drift | None:
    return drift([view(*shares)], [0.1])


def test_loads_that_repeat_show_no_drift() -> None:
    assert found([(10.0, 0.08), (12.0, 0.5), (10.0, 0.1), (11.0, 0.2), (10.0, 0.09), (12.0, 0.45)]) is None


def test_a_larger_load_that_misses_more_is_no_drift() -> None:
    assert found([(4.0, 0.0), (8.0, 0.0), (12.0, 0.6), (16.0, 0.9)]) is None


def test_the_same_load_that_misses_far_more_later_shows_a_slower_server() -> None:
    drifted = found([(10.0, 0.02), (12.0, 0.05), (10.0, 0.02), (10.0, 0.5), (9.5, 0.4), (10.0, 0.5)])
    assert drifted is not None
    assert (drifted.direction, drifted.since) == ("slower", 90.0)
    assert drifted.earlier < 0.06 < 0.4 <= drifted.later


def test_a_smaller_load_that_misses_more_later_shows_it_too() -> None:
    drifted = found([(10.0, 0.02), (10.0, 0.02), (9.0, 0.5), (8.5, 0.4)])
    assert drifted is not None
    assert drifted.slower


def test_the_same_load_that_misses_far_less_later_shows_a_faster_server() -> None:
    drifted = found([(10.0, 0.6), (10.0, 0.5), (10.0, 0.02), (11.0, 0.03)])
    assert drifted is not None
    assert drifted.direction == "faster"


def test_one_later_window_is_a_disturbance() -> None:
    assert found([(10.0, 0.02), (10.0, 0.02), (10.0, 0.02), (10.0, 0.9)]) is None


def test_contradictions_in_both_directions_are_no_drift() -> None:
    assert found([(10.0, 0.3), (10.0, 0.3), (10.0, 0.02), (10.0, 0.02), (10.0, 0.3), (10.0, 0.3)]) is None


def test_a_difference_within_the_errors_is_no_drift() -> None:
    few = [view((10.0, 0.05), (10.0, 0.05), (10.0, 0.2), (10.0, 0.2), counted=20.0)]
    assert drift(few, [0.1]) is None


def test_too_little_time_on_one_side_is_no_evidence() -> None:
    short = [view((10.0, 0.02), (10.0, 0.02), (10.0, 0.5), (10.0, 0.5), seconds=8.0)]
    assert drift(short, [0.1]) is None


def test_without_windows_there_is_no_drift() -> None:
    assert drift([[]], [0.1]) is None


SLOWER = [Kept(2.0, 200.0, missed=0.02), Kept(2.1, 200.0, missed=0.03), Kept(2.0, 200.0, missed=0.3)]


def answer(*kept: Kept) -> TierAnswer:
    limits = SearchLimits(low=0.1, high=1000.0, budget=600.0)
    (given,) = SearchPlan([[0]], [OBJECTIVE], limits).answers(evidence_of(*kept))
    return given


def test_the_answer_of_a_search_says_that_the_server_drifted() -> None:
    drifted = answer(*SLOWER, Kept(1.95, 200.0, missed=0.3))
    assert (drifted.kind, drifted.load, drifted.binding) == (AnswerKind.DRIFTED, None, OBJECTIVE.text)
    text = answer_sentence("vLLM", drifted, [OBJECTIVE], SEARCH)
    assert text.startswith("vLLM became slower during the search: around ")
    assert "% within before 6:" in text
    assert (binding_text(drifted, [OBJECTIVE]), interval_text(drifted, SEARCH)) == (
        "",
        "none: the server became slower",
    )


def test_the_confirmation_counts_as_a_later_window() -> None:
    assert answer(*SLOWER).kind is not AnswerKind.DRIFTED
    assert answer(*SLOWER, Kept(1.95, 200.0, missed=0.3, purpose=Purpose.CONFIRM)).kind is AnswerKind.DRIFTED
