"""What the dashboard knows of a search at a time of its run."""

from __future__ import annotations

import dataclasses

from servetop.core.events import Note, Severity, StageChange
from servetop.tui.state.search_progress import SearchHistory, SearchProgress
from tests.tui.canned_search import AGAIN, FOUR, SEARCH, STATES, TWENTY


def history() -> SearchHistory:
    found = SearchHistory(SEARCH)
    found.fold(STATES[:3])
    found.fold(STATES[3:])
    return found


def progress(at: float) -> SearchProgress:
    found = history().at(at, stages=(), notes=())
    assert found is not None
    return found


def test_a_run_that_is_no_search_has_no_progress() -> None:
    assert SearchHistory(None).at(5.0, stages=(), notes=()) is None


def test_nothing_is_known_of_the_future() -> None:
    assert [load.number for load in progress(31.0).loads] == [0, 1]
    assert progress(31.0).newest == STATES[2]
    assert not progress(74.0).over
    assert progress(75.0).over


def test_a_load_has_its_newest_figures() -> None:
    found = SearchHistory(SEARCH)
    longer = dataclasses.replace(FOUR, end=25.0)
    found.fold([STATES[1], dataclasses.replace(STATES[2], loads=(longer, TWENTY))])
    at_end = found.at(40.0, stages=(), notes=())
    assert at_end is not None
    assert at_end.loads == (longer, TWENTY)
    back = found.at(20.0, stages=(), notes=())
    assert back is not None
    assert back.loads == (FOUR,)


def test_all_loads_are_in_order_of_time_at_the_end() -> None:
    assert [load.number for load in progress(100.0).loads] == [0, 1, 2, 3, 4]
    assert progress(100.0).loads[-1] == AGAIN


def test_the_binding_objective_is_the_first_one_while_none_binds() -> None:
    assert (progress(1.0).binding, progress(50.0).binding) == (0, 0)


def test_a_recording_without_decisions_shows_loads_and_what_its_notes_say() -> None:
    stages = [
        StageChange(at=at, index=index, label="", request_rate=rate, max_concurrency=None, max_num_seqs=None)
        for index, (at, rate) in enumerate([(0.0, None), (2.0, 4.0), (10.0, 8.0)])
    ]
    note = Note(
        at=10.0,
        severity=Severity.INFO,
        source="search",
        text="4 req/s for 8 s",
        fact="probe",
        subject="recover",
        count=2,
    )
    found = SearchHistory(SEARCH).at(15.0, stages=stages, notes=[note])
    assert found is not None
    assert found.newest_note == "4 req/s for 8 s"
    assert [(each.load, each.begin, each.end, each.purpose) for each in found.loads] == [
        (4.0, 2.0, 10.0, "measure"),
        (8.0, 10.0, 15.0, "recover"),
    ]


def test_loads_before_a_restart_of_the_server_do_not_count_once_it_is_noted() -> None:
    note = Note(at=30.0, severity=Severity.WARNING, source="search", text="", fact="restarted", count=2)
    before, after = (history().at(62.0, stages=(), notes=notes) for notes in ((), (note,)))
    assert before is not None
    assert after is not None
    assert (before.uncounted, after.uncounted) == (0, 2)
