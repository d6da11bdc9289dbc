"""The log screen: merged logs, levels, search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import EngineConfig
from servetop.core.events import LogLine, Note, Severity
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.detail.log_view import LogView, entry_rows
from servetop.tui.panels.live.log import LogPanel
from servetop.tui.state.frame import Frame
from servetop.tui.state.log_entries import LogEntry, MergedLog, matching

Dashboard = Callable[..., DashboardApp]
Growing = tuple[Any, DashboardApp]
FrameOf = Callable[..., Frame]


def texts(entries: list[LogEntry]) -> list[str]:
    return [entry.text for entry in entries]


def test_lines_of_engine_and_servetop_are_merged_by_time(canned: ModuleType, frame_of: FrameOf) -> None:
    entries = MergedLog().entries(frame_of(canned.finished(), 104.0))
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    assert any(entry.text.startswith("KV cache full") for entry in entries if entry.symbol == "▲")
    assert "Application startup complete." in "".join(entry.text for entry in entries if not entry.symbol)
    assert entries[-1].at <= 104.0


def test_the_empty_log_of_a_server_at_a_url_says_whether_it_is_attached(canned: ModuleType, frame_of: FrameOf) -> None:
    waiting, failed, attached = canned.booting(), canned.failed_to_start(), canned.finished()
    shown = []
    for run in (waiting, failed, attached):
        run.config = replace(run.config, engine=EngineConfig(name="auto", model="", url="http://gpu7:8000"))
        run.facts = run.facts and replace(run.facts, managed=False)
        run.log_lines = ()
        shown.append(Lines(LogPanel().draw(frame_of(run, 4.0), 80, 3)).plain.strip())
    assert shown == [
        "attaching to the server",
        "00:03 ✖ engine: vLLM exited with code 1 after 3.2 s: torch.OutOfMemoryError: tr…",
        "attached to a running server: its log is not available here",
    ]


def test_the_title_has_the_time_limit_of_a_server_that_does_not_respond_unless_it_is_one_of_several(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    run = canned.booting()
    run.config = replace(run.config, engine=EngineConfig(name="auto", model="", url="http://gpu7:8000"))
    frame = frame_of(run, 4.0)
    assert "4 s, timeout 30.0 s" in Lines(LogPanel().title(frame)).plain
    assert "timeout" not in Lines(LogPanel().title(replace(frame, server="gpu7"))).plain


def test_while_an_engine_starts_its_list_of_paths_does_not_hide_what_it_is_doing(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    run = canned.booting()
    paths = [LogLine(at=3.9, text=f"INFO [launcher.py:37] Route: /v1/{each}, Methods: POST") for each in range(35)]
    frame = replace(frame_of(run, 4.0), log=(*run.log_lines, *paths))
    shown = Lines(LogPanel().draw(frame, 80, 6)).plain
    assert "Route:" not in shown
    assert run.log_lines[-1].text[-20:] in shown
    after = replace(frame_of(canned.finished(), 104.0), log=tuple(paths))
    assert "Route:" in Lines(LogPanel().draw(after, 80, 6)).plain


def test_a_level_hides_less_severe_lines(canned: ModuleType, frame_of: FrameOf) -> None:
    frame, book = frame_of(canned.finished(), 126.0), MergedLog()
    every, warnings, errors = (len(book.entries(frame, least=least)) for least in Severity)
    assert every > warnings > errors == 0
    assert {entry.severity for entry in book.entries(frame, least=Severity.WARNING)} == {Severity.WARNING}


def test_the_merged_log_grows_seeks_back_and_adds_late_lines(canned: ModuleType, frame_of: FrameOf) -> None:
    frame, book = frame_of(canned.without_metrics(), 5.0), MergedLog()
    a, b, c = (LogLine(at=at, text=text) for at, text in ((1.0, "a"), (2.0, "b"), (1.5, "c")))

    def read(*lines: LogLine) -> list[str]:
        return texts(list(book.entries(replace(frame, log=lines))))

    assert read(a) == ["a"]
    assert read(a, b) == ["a", "b"]
    assert read(a, c, b) == ["a", "c", "b"]
    assert read(a) == ["a"]
    assert read() == []
    assert read(b) == ["b"]


def test_a_search_ignores_case_and_an_empty_query_matches_nothing() -> None:
    entries = [
        LogEntry(1.0, Severity.INFO, "Engine ready"),
        LogEntry(2.0, Severity.INFO, "swap"),
        LogEntry(3.0, Severity.INFO, "ENGINE"),
    ]
    assert matching(entries, "engine") == [0, 2]
    assert matching(entries, "") == []


def test_servetops_lines_have_its_name_and_matches_are_in_brackets() -> None:
    engine = LogEntry(61.0, Severity.INFO, "Engine ready")
    own = LogEntry(62.0, Severity.WARNING, "preemptions started", "▲")
    rows = [*entry_rows(engine, 60, query="READY", chosen=True), *entry_rows(own, 60)]
    assert Lines(rows).plain.split("\n") == ["▸01:01   Engine [ready]", " 01:02 ▲ servetop preemptions started"]
    assert rows[1][2][1] == "warn"


def test_long_lines_are_wrapped_between_words_below_their_text() -> None:
    text = "Avg prompt throughput: 435.2 tokens/s, Running: 34 reqs"
    entry = LogEntry(61.0, Severity.WARNING, text, source="metrics.py:417")
    rows = Lines(entry_rows(entry, 40)).plain.split("\n")
    assert [row.rstrip() for row in rows] == [
        " 01:01 ! Avg prompt throughput: 435.2", "         tokens/s, Running: 34 reqs", "         metrics.py:417",
    ]  # fmt: skip
    (cut,) = entry_rows(entry, 40, wrap=False)
    assert Lines([cut]).plain == " 01:01 ! Avg prompt throughput: 435.2 t…"


@given(st.text(max_size=300), st.integers(1, 90))
def test_a_wrapped_line_has_its_width_and_keeps_its_words(text: str, width: int) -> None:
    entry = LogEntry(61.0, Severity.INFO, sanitize_line(text))
    rows = entry_rows(entry, width)
    assert max(row_width(row) for row in rows) <= width
    if width >= 40:
        shown = "".join(run for row in rows for run, _ in row[1:])
        assert "".join(shown.split()).endswith("".join(entry.text.split()))


async def test_w_cuts_long_lines_and_wraps_them_again_and_the_first_line_is_reached(growing: Growing) -> None:
    _, app = growing
    async with app.run_test(size=(60, 14)) as pilot:
        await pilot.press("5")
        log = app.screen.query_one(LogView)
        await pilot.press(*["pageup"] * 5)
        wrapped = log.render().plain
        assert "vLLM API server version" in wrapped.split("\n")[0]
        assert "…" not in wrapped
        await pilot.press("w")
        assert "…" in log.render().plain
        assert "long lines cut" in str(log._border_title)
        await pilot.press("w", "pageup")
        assert log.render().plain == wrapped


def test_an_attached_run_shows_its_events_in_place_of_the_log(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.without_metrics()
    run.config = replace(run.config, engine=replace(run.config.engine, url="http://gpu7:8080"))
    run.log_lines = ()
    run.notes = [Note(at=30.0, severity=Severity.WARNING, source="load", text="the server closes connections")]
    panel = LogPanel(id="log")
    frame = frame_of(run, 60.0)
    assert Lines(panel.title(frame)).plain == "Events"
    assert "00:30 ▲ load: the server closes connections" in Lines(panel.draw(frame, 70, 5)).plain
    before = Lines(panel.draw(frame_of(run, 20.0), 70, 5)).plain
    assert "attached to a running server" in before


async def test_v_filters_and_slash_searches_and_n_goes_from_match_to_match(growing: Growing) -> None:
    run, app = growing
    async with app.run_test(size=(120, 14)) as pilot:
        await pilot.press("5")
        log = app.screen.query_one(LogView)

        def shown() -> str:
            return log.render().plain

        await pilot.press("slash", *"api_server", "enter")
        assert "2 of 2 found" in str(log._border_title)
        assert "▸00:04   Starting vLLM API server on http://127.0.0.1:8000  [api_server].py:1336" in shown()
        await pilot.press("n")
        assert "1 of 2 found" in str(log._border_title)
        assert "▸00:00   vLLM API server version 0.32.0  [api_server].py:1289" in shown()
        run.now = 118.0
        app.poll()
        assert "▸00:00" in shown()
        await pilot.press("N", "N")
        assert "2 of 2 found" in str(log._border_title)
        await pilot.press("slash", "escape")
        assert log.search_text == "api_server"
        await pilot.press("v")
        assert "Application startup complete" not in shown()
        assert "preempted by RECOMPUTE" in shown()
        await pilot.press("v")
        assert "no such lines" in shown()
        assert run.sent == []


async def test_a_hostile_query_is_plain_text(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.hostile(), start_at=110.0)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("5", "slash", *"[link=x]", "enter")
        assert "\x1b" not in app.screen.query_one(LogView).render().plain
        assert "/[link=x]" in str(app.screen.query_one(LogView)._border_title)
