"""The story of a finished run on the overview, and how a recording opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.diagnosis.run_verdict import RunCause
from servetop.analysis.diagnosis.story_line import StoryLine
from servetop.core.events import Note, RunEnd, Severity
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.live.diagnosis import draw_headline
from servetop.tui.panels.live.story_card import card_rows, card_shown
from servetop.tui.state import judged_run
from servetop.tui.state.frame import Frame

Dashboard = Callable[..., DashboardApp]
FrameOf = Callable[..., Frame]
TextOf = Callable[[DashboardApp, str], str]
END = 126.0


def drawn(frame: Frame, width: int, height: int) -> list[str]:
    return Lines([row for _, row in card_rows(frame, width, height)]).plain.split("\n")


def shown(app: DashboardApp, selector: str = "#story") -> bool:
    return app.screen_stack[0].query_one(selector).display


def lines_of(app: DashboardApp) -> Sequence[StoryLine]:
    story = app.viewer.run.story_at(END)
    assert story is not None
    return story.lines


def line_times(app: DashboardApp) -> list[float | None]:
    return [line.at for line in lines_of(app)]


def test_without_room_the_headline_omits_intervals_before_its_last_parts(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), END)
    assert frame.story is not None
    whole = "KV-bound from 0:54; sustainable ≈ 11 req/s [9.4, 12.1] with TTFT ≤ 500 ms; try max_num_seqs 32"
    verdict = replace(frame.story.verdict, cause=RunCause.KV)
    story = replace(frame.story, headline=whole, verdict=verdict, sweep=None)
    shown_at = {width: Lines([draw_headline(story, width)]).plain.strip() for width in (100, 85, 70)}
    assert shown_at == {
        100: f"▲ {whole}",
        85: "▲ KV-bound from 0:54; sustainable ≈ 11 req/s with TTFT ≤ 500 ms; try max_num_seqs 32",
        70: "▲ KV-bound from 0:54; sustainable ≈ 11 req/s with TTFT ≤ 500 ms",
    }


def test_each_line_has_its_time_and_a_mark(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), END)
    assert frame.story is not None
    rows = drawn(frame, 116, 12)
    assert len(rows) == len(frame.story.lines)
    assert rows[0].startswith("▸  1:")
    assert rows[0][9] == "▲"
    assert {row[9] for row in rows[1:-1]} == {"·"}
    assert rows[-1].startswith("         → ")
    for row, line in zip(rows, frame.story.lines, strict=True):
        assert row.endswith(line.text)


@pytest.mark.parametrize("width", [58, 78, 116])
def test_lines_are_wrapped_while_there_is_room_and_advice_before_the_others(
    canned: ModuleType, frame_of: FrameOf, width: int
) -> None:
    frame = frame_of(canned.finished(), END)
    assert frame.story is not None
    whole = card_rows(frame, width, 12)
    for number, line in enumerate(frame.story.lines):
        pieces = [Lines([row]).plain[11:] for each, row in whole if each == number]
        assert " ".join(pieces) == line.text
    lines = len(frame.story.lines)
    for height in (lines, lines + 1):
        rows = card_rows(frame, width, height)
        assert len(rows) <= height
        assert {number for number, _ in rows} == set(range(lines))
        assert all(row_width(row) <= width for _, row in rows)
    advice = [Lines([row]).plain[11:] for each, row in card_rows(frame, width, lines + 1) if each == lines - 1]
    assert " ".join(advice) == frame.story.lines[-1].text


def test_a_low_card_shows_the_lines_around_the_selected_one_and_the_advice(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    frame = frame_of(canned.finished(), END)
    assert frame.story is not None
    facts = len(frame.story.lines) - 1
    for selected in range(facts):
        numbers = [number for number, _ in card_rows(frame_of(canned.finished(), END, story_line=selected), 78, 3)]
        assert selected in numbers
        assert numbers[-1] == facts
        assert len(numbers) == 3


def test_the_card_is_shown_at_the_end_only(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    assert card_shown(frame_of(run, END))
    assert not card_shown(frame_of(run, 100.0))
    assert not card_shown(frame_of(run, END, cursor=Cursor(at=60.0)))
    assert not card_shown(frame_of(run, END, story_hidden=True))
    assert not card_shown(frame_of(canned.growing(110.0), 110.0))


async def test_a_recording_opens_whole_and_paused_at_its_end_with_its_story(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        assert shown(app)
        assert app.viewer.frame().window == (6.0, END)
        assert text_of(app, "#status").endswith("axis 2:00")
        title = text_of(app, "#story").split("\n")[0]
        assert title.startswith("What happened · 2:00 of load · ")
        assert title.endswith(" requests")
        assert text_of(app, "#keys").strip().startswith("↑↓ select  Enter go there  esc close")
        await pilot.press("space")
        view = app.viewer.view
        assert (view.playhead.at, view.playhead.playing, view.span) == (4.0, True, 120.0)
        assert not shown(app)


async def test_enter_goes_to_the_selected_line_and_end_returns(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        times = line_times(app)
        line = lines_of(app)[0]
        await pilot.press("up", "enter")
        view = app.viewer.view
        assert (view.playhead.at, view.playhead.playing, view.span) == (line.known_at, False, 120.0)
        assert app.viewer.frame().verdict.bottleneck is Bottleneck.KV
        assert not shown(app)
        assert "End returns · the KV cache fills" in text_of(app, "#status")
        await pilot.press("end")
        assert shown(app)
        assert app.viewer.view.span == 0.0
        assert app.viewer.view.story_line == 0
        await pilot.press(*["down"] * 9, "up", "enter")
        assert times[app.viewer.view.story_line] == END
        assert shown(app)
        assert "this is the end of the run" in text_of(app, "#status")
        await pilot.press("down", "enter")
        assert times[app.viewer.view.story_line] is None
        assert app.viewer.view.playhead.at == END
        assert "this line is about the whole run: it has no time to go to" in text_of(app, "#status")
        assert app.viewer.source.sent == []  # type: ignore[attr-defined]


async def test_a_selected_time_axis_stays(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("z", "enter")
        assert app.viewer.view.span == 30.0
        await pilot.press("end", "space")
        assert app.viewer.view.span == 30.0


async def test_a_click_on_a_line_goes_to_the_time_at_which_it_was_known(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.click("#story", offset=(20, 3))
        assert app.viewer.view.playhead.at == lines_of(app)[2].known_at


async def test_escape_closes_the_card_until_the_end_is_reached_again(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("tab", "escape")
        assert shown(app)
        await pilot.press("escape")
        assert not shown(app)
        await pilot.press("end")
        assert shown(app)
        await pilot.press("escape", "left")
        assert not shown(app)
        await pilot.press("right")
        assert shown(app)


async def test_enter_maximises_a_selected_panel(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("tab", "enter")
        assert app.screen.has_class("-maximised")
        assert app.viewer.view.playhead.at == END
        assert not shown(app)
        await pilot.press("enter")
        assert shown(app)


async def test_a_run_that_ends_while_it_is_watched_shows_its_story(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.growing(110.0)
    app = dashboard(run)
    async with app.run_test(size=(120, 40)) as pilot:
        assert not shown(app)
        run.now, run.live, run.end = END, False, canned.finished().end
        app.viewer.clock.advance_to(20.0)  # type: ignore[attr-defined]
        app.poll()
        await pilot.pause()
        assert shown(app)
        story = app.viewer.frame().story
        assert story is not None
        assert story.lines[0].text in text_of(app, "#story")
        assert len(card_rows(app.viewer.frame(), 116, 12)) == app.screen.query_one("#story").size.height


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 30), (120, 40), (160, 48), (200, 24), (220, 60)])
async def test_the_card_leaves_room_for_the_panels(
    canned: ModuleType, dashboard: Dashboard, size: tuple[int, int]
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert shown(app)
        assert app.screen.query_one("#story").region.height <= size[1] * 0.3
        for panel in app.screen.query("#panels > Panel"):
            if panel.display and panel.id != "load":
                assert panel.size.height >= 1, panel.id
                assert panel.region.bottom <= size[1] - 2, panel.id


async def test_a_long_recording_has_its_first_frame_before_its_story(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_run, "_JUDGED_AT_ONCE", 100)
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        assert "judging the run" in text_of(app, "#story")
        polls = 0
        while "judging the run" in text_of(app, "#story"):
            polls += 1  # a busy machine draws some of them together
            app.viewer.clock.advance_to(polls * 0.05)  # type: ignore[attr-defined]
            app.poll()
            await pilot.pause()
        assert app.screen.query_one("#story").size.height > 3


async def test_a_failure_is_shown_once(canned: ModuleType, dashboard: Dashboard, text_of: TextOf) -> None:
    app = dashboard(canned.failed_to_start())
    async with app.run_test(size=(120, 40)) as pilot:
        assert (shown(app), shown(app, "#alert")) == (True, False)
        reason = text_of(app, "#story")
        assert "✖ the engine failed: vLLM exited with code 1 after 3.2 s" in reason
        await pilot.press("escape")
        assert (shown(app), shown(app, "#alert")) == (False, True)
        assert "vLLM exited with code 1 after 3.2 s" in text_of(app, "#alert")


async def test_an_error_that_the_story_does_not_have_stays_an_alert(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.finished()
    run.notes = (*run.notes, Note(at=124.0, severity=Severity.ERROR, source="recording", text="the disk is full"))
    app = dashboard(run)
    async with app.run_test(size=(120, 40)):
        assert (shown(app), shown(app, "#alert")) == (True, True)
        assert "the disk is full" in text_of(app, "#alert")


async def test_the_engine_that_fails_marks_the_line_of_its_failure(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.end = RunEnd(at=END, exit_code=3, reason="vLLM was killed by SIGKILL")
    rows = drawn(frame_of(run, END), 116, 12)
    assert [row for row in rows if "✖" in row] == [row for row in rows if "the engine failed: vLLM was killed" in row]
    assert len([row for row in rows if "✖" in row]) == 1


def test_hostile_texts_are_sanitized(canned: ModuleType, frame_of: FrameOf) -> None:
    run: Any = canned.failed_to_start()
    run.end = replace(run.end, reason=canned.EVIL)
    text = "\n".join(drawn(frame_of(run, 4.0), 116, 12))
    assert "evil" in text
    assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e"} & set(text)
