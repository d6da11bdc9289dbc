"""The log screen: merged logs, levels, search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

from servetop.core.config import EngineConfig
from servetop.core.events import LogLine, Severity
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.log_view import LogView, entry_row
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
        "not attached",
        "attached to a running server: its log is not available here",
    ]


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
    rows = [entry_row(engine, 60, query="READY", chosen=True), entry_row(own, 60)]
    assert Lines(rows).plain.split("\n") == ["▸01:01   Engine [ready]", " 01:02 ▲ servetop preemptions started"]
    assert rows[1][2][1] == "warn"


async def test_v_filters_and_slash_searches_and_n_goes_from_match_to_match(growing: Growing) -> None:
    run, app = growing
    async with app.run_test(size=(120, 14)) as pilot:
        await pilot.press("5")
        log = app.screen.query_one(LogView)

        def shown() -> str:
            return log.render().plain

        await pilot.press("slash", *"api_server", "enter")
        assert "2 of 2 found" in str(log._border_title)
        assert "▸00:04   INFO 11-21 10:58:05 [[api_server]" in shown()
        await pilot.press("n")
        assert "1 of 2 found" in str(log._border_title)
        assert "▸00:00   INFO 11-21 10:58:01 [[api_server]" in shown()
        run.now = 118.0
        app.poll()
        assert "▸00:00" in shown()
        await pilot.press("N", "N")
        assert "2 of 2 found" in str(log._border_title)
        await pilot.press("slash", "escape")
        assert log.search_text == "api_server"
        await pilot.press("v")
        assert "INFO" not in shown()
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
