"""What is recorded of a search at a decision, and what its recording returns."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from servetop.core.errors import ExitCode
from servetop.core.events import RunEnd
from servetop.core.interfaces.search_state import SearchState
from servetop.recordings.format.search_codec import SEARCH_STATES
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.run.search.answer_line import answer_line
from servetop.run.search.probe_decision import ProbeDecider
from servetop.run.search.search_end import searched_end
from servetop.run.search.search_evidence import NextProbe, Purpose
from servetop.run.search.search_result import search_result
from servetop.run.search.search_states import SearchStates
from tests.run.search.made_evidence import Kept, evidence_of
from tests.run.search.searches import FOUND, SEARCH, record, setup

NEXT = NextProbe(load=12.0, seconds=8.0, reason="35 % likely to be too high")
CLOSED = dataclasses.replace(SEARCH, over="max_concurrency")


def state_of(*kept: Kept, states: SearchStates | None = None, probe: NextProbe | None = NEXT) -> SearchState:
    given = states or SearchStates(setup())
    return given.state(evidence_of(*kept), [FOUND], at=9.0, subject="vLLM", probe=probe)


def test_a_state_has_the_answer_the_next_load_and_the_time_left() -> None:
    state = state_of(Kept(5.0, 20.0))
    assert (state.load, state.purpose, state.reason, state.seconds_left) == (12.0, "measure", NEXT.reason, 40.0)
    assert [(each.label, round(each.allowed, 6)) for each in state.objectives] == [("p99 TTFT ≤ 500 ms", 0.01)]
    (answer,) = state.answers
    assert (answer.kind, answer.load, answer.low, answer.high, answer.binding) == ("found", 11.2, 10.9, 11.5, 0)
    assert answer.text.startswith("vLLM serves 11.2 req/s [10.9, 11.5] within p99 TTFT ≤ 500 ms")


def test_the_last_state_has_no_next_load() -> None:
    assert (state_of(Kept(5.0, 20.0), probe=None).load, state_of(Kept(5.0, 20.0), probe=None).purpose) == (None, "")


def test_a_closed_loop_keeps_whole_requests() -> None:
    states = SearchStates(setup(search=CLOSED))
    assert state_of(Kept(5.0, 20.0), states=states, probe=NextProbe(load=12.4, seconds=8.0)).load == 12.0


def test_only_loads_that_changed_are_in_a_later_state() -> None:
    states = SearchStates(setup())
    first, second = Kept(5.0, 20.0), Kept(8.0, 20.0)
    assert [each.number for each in state_of(first, states=states).loads] == [0]
    assert [each.number for each in state_of(first, second, states=states).loads] == [1]
    longer = second._replace(seconds=25.0)
    assert [(each.number, each.end) for each in state_of(first, longer, states=states).loads] == [(1, 45.0)]


@pytest.mark.parametrize(
    ("missed", "verdict"), [(0.0, "kept"), (0.3, "missed"), (0.012, "open")], ids=["kept", "missed", "open"]
)
def test_the_interval_of_the_share_decides_about_a_load(missed: float, verdict: str) -> None:
    (load,) = state_of(Kept(20.0, 400.0, missed=missed, latency=0.01)).loads
    (figure,) = load.figures
    assert figure.verdict == verdict
    assert figure.low <= figure.missed / figure.counted <= figure.high


def test_a_recovery_has_no_figures_and_a_confirmation_those_of_all_its_requests() -> None:
    recovery = Kept(2.0, 5.0, purpose=Purpose.RECOVER)
    confirmation = Kept(5.0, 20.0, missed=0.05, purpose=Purpose.CONFIRM)
    loads = state_of(Kept(5.0, 20.0), recovery, confirmation).loads
    assert [each.purpose for each in loads] == ["measure", "recover", "confirm"]
    assert loads[1].figures == ()
    (figure,) = loads[2].figures
    assert (figure.counted, figure.missed, figure.verdict) == (100.0, 5.0, "missed")


def test_a_queue_that_runs_away_is_named() -> None:
    loads = state_of(Kept(5.0, 60.0), Kept(40.0, 60.0, growth=0.9)).loads
    assert [each.queue for each in loads] == ["", "grows"]


def test_a_load_without_a_sample_is_open() -> None:
    (load,) = state_of(Kept(0.01, 8.0)).loads
    (figure,) = load.figures
    assert (figure.counted, figure.low, figure.high, figure.verdict, figure.share) == (0.0, 0.0, 1.0, "open", None)


MEANS = dataclasses.replace(SEARCH, slo=("mean_ttft<200ms",))


def state_of_means(*kept: Kept) -> SearchState:
    """A mean of the latencies, and errors beside it: none."""
    given = evidence_of(*kept)
    nothing = np.zeros(given.due.shape)
    seconds = np.where(np.isnan(given.done), 0.0, given.done - given.due)
    evidence = dataclasses.replace(given, counted=given.counted * 2, missed=(nothing, nothing), sums=(seconds, nothing))
    states = SearchStates(setup(search=MEANS, answer=dataclasses.replace(FOUND, binding="mean_ttft<200ms")))
    return states.state(evidence, [FOUND], at=9.0, subject="vLLM", probe=NEXT)


@pytest.mark.parametrize(("latency", "verdict"), [(0.1, "kept"), (0.3, "missed"), (0.2001, "open")])
def test_the_interval_of_the_mean_decides_about_a_load(latency: float, verdict: str) -> None:
    state = state_of_means(Kept(20.0, 60.0, latency=latency), Kept(1.0, 9.0, purpose=Purpose.RECOVER))
    assert [(each.label, each.mean_limit) for each in state.objectives] == [
        ("mean TTFT ≤ 200 ms", 0.2),
        ("errors ≤ 1 %", None),
    ]
    mean, errors = state.loads[0].figures
    assert mean.mean == pytest.approx(latency)
    assert (mean.verdict, errors.mean, errors.missed) == (verdict, None, 0.0)
    assert mean.low < latency < mean.high


def test_a_confirmation_has_the_mean_of_all_its_requests() -> None:
    last = Kept(20.0, 30.0, latency=0.15, growth=0.01, purpose=Purpose.CONFIRM)
    state = state_of_means(Kept(20.0, 60.0, latency=0.1), last)
    figure = state.loads[1].figures[0]
    assert figure.mean == pytest.approx(0.2985, rel=0.02)
    assert figure.verdict == "missed"


def test_a_mean_of_one_request_is_open_and_returns_from_its_row() -> None:
    state = state_of_means(Kept(0.1, 10.0))
    assert (state.loads[0].figures[0].high, state.loads[0].figures[0].verdict) == (math.inf, "open")
    values = dict(zip([column.name for column in SEARCH_STATES.columns], SEARCH_STATES.encode(state), strict=True))
    assert SEARCH_STATES.decode_all([values]) == [state]


def test_a_row_returns_the_state_that_was_written() -> None:
    state = dataclasses.replace(state_of(Kept(5.0, 20.0)), note="the server drifted")
    values = dict(zip([column.name for column in SEARCH_STATES.columns], SEARCH_STATES.encode(state), strict=True))
    assert SEARCH_STATES.decode_all([values]) == [state]
    assert SEARCH_STATES.decode_all([values | {"loads": None}]) == [dataclasses.replace(state, loads=())]
    newer = values["answers"].replace('"slo"', '"of_a_newer_version": 1, "slo"')
    assert SEARCH_STATES.decode_all([values | {"answers": newer}]) == [state]


@pytest.mark.parametrize("damaged", ["[", "3", '[{"slo": 5}]', "[4]"])
def test_a_damaged_row_is_refused(damaged: str) -> None:
    values = dict(
        zip([each.name for each in SEARCH_STATES.columns], SEARCH_STATES.encode(state_of(Kept(5.0, 20.0))), strict=True)
    )
    with pytest.raises((ValueError, TypeError)):
        SEARCH_STATES.decode_all([values | {"answers": damaged}])


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    (load,) = state_of(Kept(5.0, 20.0)).loads
    state = dataclasses.replace(state_of(Kept(5.0, 20.0)), loads=(dataclasses.replace(load, begin=np.float64(1.5)),))
    assert '"begin":1.5' in SEARCH_STATES.encode(state)[-1]


def test_a_decision_has_its_state(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(record(tmp_path / "run.servetop", 5.0))) as reader:
        search = setup(NEXT, NEXT)
        decider = ProbeDecider(search, search.evidence_reader(reader), reader)
        before = decider.first().state
        state = decider.decide().state
    assert (before.load, before.reason) == (12.0, NEXT.reason)
    assert state is not None
    assert (state.load, state.reason) == (12.0, NEXT.reason)
    assert math.isclose(state.at, 8.0, abs_tol=3.0)


def test_the_last_state_has_the_line_that_is_printed(tmp_path: Path) -> None:
    path = record(tmp_path / "run.servetop", 2.0, 5.0, prices=("$2.5/h",))
    end = RunEnd(at=16.0, exit_code=int(ExitCode.OK), reason="")
    with contextlib.closing(RecordingReader.open(path)) as reader:
        _, _, state = searched_end(reader, None, end)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        result = search_result(reader, run_summary(reader, end=end), end=end)
    assert [each.text for each in state.answers] == [answer_line(result, tier) for tier in result.tiers]
    assert (state.load, state.at) == (None, 16.0)
    assert [each.load for each in state.loads] == [2.0, 5.0]


def test_loads_before_a_restart_keep_their_numbers_and_figures() -> None:
    states = SearchStates(setup())
    before = evidence_of(Kept(5.0, 20.0), Kept(8.0, 20.0))
    states.state(before, [FOUND], at=40.0, subject="vLLM", probe=NEXT)
    after = evidence_of(Kept(5.0, 20.0), Kept(8.0, 20.0), Kept(8.0, 10.0))
    rest = dataclasses.replace(after.probes[2], restarts=1)
    after = dataclasses.replace(after, earlier=after.probes[:2], probes=(rest,), restarted_at=40.0)
    state = states.state(after, [FOUND], at=50.0, subject="vLLM", probe=NEXT)
    assert [(each.number, each.begin) for each in state.loads] == [(2, 40.0)]
    assert state.note.startswith("the server restarted at 0:40: nothing before that counts")
    assert state.seconds_left == 10.0
