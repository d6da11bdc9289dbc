"""The timeline: stages, marks, and names of episodes beside the playhead and the cursor; lanes where rows are left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.core.events import Note, Severity
from servetop.tui.drawing.cursor import MARK, Cursor
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.live.timeline import TimelinePanel, draw_timeline
from servetop.tui.state.frame import Frame

FrameOf = Callable[..., Frame]


def lasting(kind: EpisodeKind, begin: float, end: float) -> Episode:
    return Episode(kind=kind, begin=begin, detected_at=begin, end=end, closed_at=end, worst=9.0, worst_at=begin)


def rows(frame: Frame, height: int) -> list[str]:
    """The timeline of a run of 126 s, one cell per second."""
    return Lines(draw_timeline(frame, 126, height)).plain.split("\n")


def title(frame: Frame) -> str:
    return Lines(list(TimelinePanel(id="timeline").title(frame))).plain


def test_the_timeline_has_stages_events_and_the_position(canned: ModuleType, frame_of: FrameOf) -> None:
    labels, line = rows(frame_of(canned.finished(), 63.0), 2)
    assert labels[6:].startswith("┊4 req/s · batch 192")
    assert {line[0], line[6], line[36], line[96]} == {"┿"}
    bar = line[100 : 100 + 18]
    assert bar == "▬ KV cache full ▬▬", line
    assert (line[40], line[63], line[72]) == ("◆", "█", "▲")
    assert {line[number] for number in (12, 35, 47, 62, 64)} == {"═"}  # steady from 11 s to 36 s, from 46 s to 66 s
    assert (line[8], line[38], line[70]) == ("━", "━", "─")


def test_the_most_serious_episode_of_the_time_shown_is_named(canned: ModuleType, frame_of: FrameOf) -> None:
    overload = lasting(EpisodeKind.KV, 62.0, 100.0), lasting(EpisodeKind.QUEUE, 64.0, 120.0)
    frame = replace(frame_of(canned.finished(), 90.0), episodes=overload, all_notes=())
    line = rows(frame, 2)[1]
    assert "▬ KV cache full ▬" in line
    assert line.index("▬ queue ▬") == 100  # its bar begins below the more serious one
    assert line[110] == "▬"
    assert "KV cache full" in title(frame)
    later = replace(frame, view=replace(frame.view, playhead=replace(frame.view.playhead, at=110.0)))
    assert "queue for 0:56, up to 9 waiting" in title(later)


def test_nothing_after_the_error_that_ends_the_run_is_named_instead(canned: ModuleType, frame_of: FrameOf) -> None:
    killed = Note(at=60.0, severity=Severity.ERROR, source="run", text="vLLM was killed")
    back = Note(at=64.0, severity=Severity.INFO, source="metrics", text="metrics are back")
    frame = replace(frame_of(canned.finished(), 65.0), episodes=(), all_notes=(killed, back))
    assert title(frame).endswith("run: vLLM was killed")
    alive = replace(frame, all_notes=(replace(killed, source="load"), back))
    assert title(alive).endswith("metrics: metrics are back")


@pytest.mark.parametrize(("at", "start"), [(70.0, 73), (73.0, 88), (87.0, 88), (88.0, 73), (110.0, 73)])
def test_the_playhead_does_not_cover_an_episodes_name(
    canned: ModuleType, frame_of: FrameOf, at: float, start: int
) -> None:
    full = (lasting(EpisodeKind.KV, 72.0, 120.0),)
    frame = replace(frame_of(canned.finished(), at), episodes=full, all_notes=(), all_stages=())
    line = rows(frame, 2)[1]
    assert line.index("KV cache full") == start + 1
    assert line[int(at)] == "█"


def test_the_cursor_does_not_cover_an_episodes_name(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 110.0, cursor=Cursor(at=78.0))
    line = rows(replace(frame, episodes=(lasting(EpisodeKind.KV, 72.0, 120.0),), all_notes=(), all_stages=()), 2)[1]
    assert " KV cache full " in line
    assert line[78] == MARK


def test_a_position_replaces_the_name_on_a_bar_that_has_no_other_place_for_it(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    full = (lasting(EpisodeKind.KV, 72.0, 92.0),)
    frame = replace(frame_of(canned.finished(), 76.0), episodes=full, all_notes=(), all_stages=())
    assert rows(frame, 2)[1][72:80] == "▬▬▬▬█▬▬▬"


def test_a_bar_that_is_hidden_in_part_has_its_name_where_it_is_visible(canned: ModuleType, frame_of: FrameOf) -> None:
    overload = (lasting(EpisodeKind.PREEMPTIONS, 64.0, 110.0), lasting(EpisodeKind.KV, 66.0, 92.0))
    frame = replace(frame_of(canned.finished(), 50.0), episodes=overload, all_notes=(), all_stages=())
    assert rows(frame, 2)[1][64:110] == "▬▬▬ KV cache full ▬▬▬▬▬▬▬▬▬▬▬ preemptions ▬▬▬▬"


@pytest.mark.parametrize(
    ("starts", "shown"),
    [
        ((0.0, 14.0), "┊0.5 to 3     ┊8 req/s"),
        ((0.0, 25.0), "┊0.5 to 3 req/s          ┊8 req/s"),
        ((0.0, 9.0), "┊0.5     ┊8 req/s"),
        ((0.0, 3.0), "┊  ┊8 req/s"),
    ],
)
def test_a_stages_label_keeps_whole_words(
    canned: ModuleType, frame_of: FrameOf, starts: tuple[float, float], shown: str
) -> None:
    frame = frame_of(canned.finished(), 126.0)
    labels = ("0.5 to 3 req/s · batch 8", "8 req/s")
    stages = [replace(frame.all_stages[0], at=at, label=label) for at, label in zip(starts, labels, strict=True)]
    assert rows(replace(frame, all_stages=tuple(stages)), 2)[0] == shown


def test_five_rows_have_three_lanes_and_the_labels(canned: ModuleType, frame_of: FrameOf) -> None:
    kinds = (EpisodeKind.KV, EpisodeKind.PREEMPTIONS, EpisodeKind.QUEUE)
    frame = replace(frame_of(canned.finished(), 126.0), episodes=tuple(lasting(kind, 60.0, 110.0) for kind in kinds))
    labels, *lanes, line = rows(frame, 5)
    assert labels[6:].startswith("┊4 req/s")
    assert sorted(lane.strip(" ▬") for lane in lanes) == sorted(kind.value for kind in kinds)
    assert line.endswith("█")
