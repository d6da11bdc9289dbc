"""Marks on plots over time: each in the column of its time, names where there is room."""

from __future__ import annotations

from servetop.tui.drawing.plot_marks import TimeMarks

MARKS = TimeMarks(
    window=(0.0, 20.0),
    columns=21,
    starts=[(2.0, "4 req/s"), (12.0, "16 req/s · batch 4"), (19.0, "8 req/s")],
    spans=[("queue", 12.0, 15.0), ("preemptions", 18.0, 25.0), ("queue", 0.0, 1.0)],
)
PLOT = """\
   ┌─────────────────────┐
 1s┤•••••  •        ×××  │
   └┬─────────┬─────────┬┘
    0:00     0:10     0:20"""


def test_stages_are_marked_on_empty_cells_and_episodes_on_the_axis() -> None:
    assert MARKS.marked(PLOT, frame=4).split("\n") == [
        "   ┌─────────────────────┐",
        " 1s┤•••••  •    ┊   ×××┊ │",
        "   └┬━────────┬─━━━━──━━┬┘",
        "    0:00     0:10     0:20",
    ]


def test_rows_name_each_stage_as_far_as_there_is_room_and_each_kind_of_episode() -> None:
    assert MARKS.rows() == [
        "  ┊4 req/s  ┊16 r… ┊",
        "━━    queue ━━━━",
        "      preemptions ━━━",
    ]


def test_without_stages_and_episodes_nothing_is_listed() -> None:
    assert TimeMarks(window=(0.0, 1.0), columns=10).rows() == []


def test_a_window_without_length_has_all_marks_in_its_first_column() -> None:
    assert TimeMarks(window=(3.0, 3.0), columns=10, starts=[(3.0, "only")]).rows() == ["┊only"]
