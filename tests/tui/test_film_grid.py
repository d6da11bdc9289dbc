"""The cells of the batch film: phases, ages, pauses and requests without a record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color
from textual.style import Style
from textual.visual import RenderOptions

from servetop.core.arrays import FloatArray
from servetop.tui.drawing.film_grid import (
    DECODE,
    LOOKS,
    PREEMPTED,
    FilmGrid,
    FilmScale,
    film_grid,
    film_row,
    halved_row,
)
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.film.batch_stay import BatchStay

STAY = BatchStay(
    id=7, sent=0.0, admitted=2.0, first_token_at=3.0, until=9.0, reported=False, failed=False,
    pauses=np.empty((0, 2)),
)  # fmt: skip
SCALE = FilmScale(window=(0.0, 10.0), until=10.0, columns=20, shade=2.0)
NEVER = (np.arange(0.5, 10.5, 0.5), np.zeros(20))


def drawn(
    *stays: BatchStay, scale: FilmScale = SCALE, slots: dict[int, int] | None = None,
    preemptions: tuple[FloatArray, FloatArray] = NEVER,
) -> FilmGrid:  # fmt: skip
    return film_grid(stays, slots or {stay.id: 0 for stay in stays}, scale, preemptions=preemptions)


def text_of(grid: FilmGrid) -> list[str]:
    return [Lines([film_row(states, shaded=True)]).plain for states in grid.states]


def test_a_request_is_bright_in_prefill_and_darker_with_age() -> None:
    assert text_of(drawn(STAY)) == ["    ◆◆▒▒▓▓▓▓██████  "]


def test_with_colours_ages_have_one_glyph_and_pauses_their_own() -> None:
    paused = replace(STAY, pauses=np.array([[5.1, 7.4]]))
    runs = film_row(drawn(paused).states[0], shaded=False)
    assert Lines([runs]).plain == "    ▇▇▇▇▇▇▇───▇▇▇▇  "
    assert [style for text, style in runs if "▇" in text] == ["bright", "age2", "age3", "age4"]


def test_nothing_after_the_playhead_is_drawn() -> None:
    assert text_of(drawn(STAY, scale=replace(SCALE, until=5.0))) == ["    ◆◆▒▒▓▓          "]
    assert text_of(drawn(STAY, scale=replace(SCALE, until=1.0))) == [" " * 20]


def test_a_pause_is_a_notch_if_the_engine_preempted_and_a_stall_if_not() -> None:
    paused = replace(STAY, pauses=np.array([[5.1, 7.4]]))
    counted = (NEVER[0], np.where(NEVER[0] == 6.0, 1.0, 0.0))
    assert text_of(drawn(paused)) == ["    ◆◆▒▒▓▓▓───████  "]
    assert text_of(drawn(paused, preemptions=counted)) == ["    ◆◆▒▒▓▓▓╌╌╌████  "]


def test_a_short_preemption_has_one_cell() -> None:
    paused = replace(STAY, pauses=np.array([[5.1, 5.4]]))
    counted = (NEVER[0], np.where(NEVER[0] == 5.5, 1.0, 0.0))
    assert text_of(drawn(paused, preemptions=counted))[0].count("╌") == 1


def test_a_pause_is_not_known_before_it_is_long() -> None:
    paused = replace(STAY, pauses=np.array([[4.9, 7.4]]))
    assert "─" not in text_of(drawn(paused, scale=replace(SCALE, until=5.1)))[0]


def test_the_next_request_in_a_slot_begins_with_its_prefill() -> None:
    after = replace(STAY, id=8, sent=8.5, admitted=9.0, first_token_at=9.001, until=12.0)
    grid = drawn(STAY, after, scale=replace(SCALE, window=(0.0, 15.0), until=15.0, columns=30))
    assert text_of(grid)[0][16:20] == "██◆░"
    assert grid.owners[0, 17:19].tolist() == [7, 8]


def test_a_failed_request_ends_in_a_cross() -> None:
    assert text_of(drawn(replace(STAY, failed=True)))[0].rstrip().endswith("✖")


def test_requests_without_a_record_fill_the_lowest_free_slots() -> None:
    grid = drawn(replace(STAY, until=5.0))
    counts = np.full(20, 2)
    counts[:4] = 0
    filled = grid.with_unrecorded(counts)
    assert text_of(filled) == ["    ◆◆▒▒▓▓··········", "    ················", "    ······          "]
    assert (filled.owners >= 0).sum() == (grid.owners >= 0).sum()
    assert filled.running().tolist() == grid.running().tolist()


def test_preempted_requests_do_not_run() -> None:
    states = np.array([[0, DECODE, PREEMPTED], [DECODE, DECODE, DECODE]])
    assert FilmGrid(states=states, owners=states).running().tolist() == [1, 2, 1]


@given(st.lists(st.tuples(st.integers(0, len(LOOKS) - 1), st.integers(0, len(LOOKS) - 1)), min_size=1, max_size=40))
def test_two_slots_in_a_row_keep_its_width_and_both_colours(cells: list[tuple[int, int]]) -> None:
    upper, lower = (np.array(each, dtype=np.int64) for each in zip(*cells, strict=True))
    runs = halved_row(upper, lower)
    assert row_width(runs) == len(cells)
    styles = [style for text, style in runs for _ in text]
    for (high, low), style in zip(cells, styles, strict=True):
        shown = {LOOKS[each][1] for each in (high, low) if each > 1}
        assert not shown or set(style.split("/")) == shown


def test_a_half_cell_has_a_ground_and_the_blank_after_it_none() -> None:
    colours = {".age1": "#112233", ".age2": "#445566"}
    options = RenderOptions(lambda name: Style(foreground=Color.parse(colours[str(name)])), {})
    row = [("▀", "age1/age2"), ("  ", ""), ("▄", "age1")]
    (strip,) = Lines([row]).render_strips(4, None, Style(), options)
    grounds = [(part.text, part.style.bgcolor.name if part.style and part.style.bgcolor else None) for part in strip]
    assert grounds == [("▀", "#445566"), ("  ", None), ("▄", None)]
