"""The batch film as cells: slots by time, each with the phase and the age of the request in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from servetop.core.arrays import FloatArray, IntArray
from servetop.tui.drawing.palette import AGES
from servetop.tui.drawing.text_runs import Run
from servetop.tui.film.batch_stay import SHORTEST_PAUSE, BatchStay, are_preemptions

EMPTY, UNRECORDED, PREFILL, DECODE = range(4)
"""States of a cell; from DECODE on one for each of `AGES`, then those below."""
STALLED, PREEMPTED, FAILED = range(DECODE + len(AGES), DECODE + len(AGES) + 3)
LOOKS: tuple[Run, ...] = (
    (" ", ""),
    ("·", "faint"),
    ("◆", "bright"),
    *zip("░▒▓█", AGES, strict=True),
    ("─", "muted"),
    ("╌", "notch"),
    ("✖", "bad"),
)
"""Glyph and style of each state, distinguishable without colour."""
_CELLS_WITH_PREFILL = 3
"""A request of at least this number of cells shows its prefill, however short."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilmGrid:
    """States by slot and column, and the request in each cell."""

    states: IntArray
    """Shape (slots, columns), slot 0 first."""
    owners: IntArray
    """Id of the request in each cell, -1 for none; shape (slots, columns)."""

    def running(self) -> IntArray:
        """Return the number of requests in the batch in each column, without preempted ones; shape (columns,)."""
        inside = (self.states >= PREFILL) & (self.states != PREEMPTED)
        return np.asarray(inside.sum(axis=0), dtype=np.int64)

    def with_unrecorded(self, counts: IntArray) -> FilmGrid:
        """Mark the lowest free slots of each column as running a request that is not recorded; shape (columns,)."""
        missing = int((counts - (self.states == EMPTY).sum(axis=0)).max(initial=0))
        states = np.pad(self.states, ((0, missing), (0, 0)))
        free = states == EMPTY
        states[free & (np.cumsum(free, axis=0) <= counts)] = UNRECORDED
        return FilmGrid(states=states, owners=np.pad(self.owners, ((0, missing), (0, 0)), constant_values=-1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilmScale:
    """The meaning of a grid's columns and shades."""

    window: tuple[float, float]
    """Left and right edge, seconds."""
    until: float
    """Columns that begin later are empty."""
    columns: int
    shade: float
    """Seconds of age that each of `AGES` covers; the last one has no end."""

    def column(self, at: float) -> int:
        """Return the column that contains a time, limited to the edges (`columns` is beyond the right edge)."""
        left, right = self.window
        return min(max(int((at - left) / (right - left) * self.columns + 1e-9), 0), self.columns)

    def columns_at(self, times: FloatArray) -> IntArray:
        """Return the columns of several times; shape as `times`."""
        left, right = self.window
        columns = (times - left) / (right - left) * self.columns + 1e-9
        return np.clip(columns, 0, self.columns).astype(np.int64)


def film_grid(
    stays: Sequence[BatchStay],
    slots: Mapping[int, int],
    scale: FilmScale,
    *,
    preemptions: tuple[FloatArray, FloatArray],
) -> FilmGrid:
    """Draw stays in order of admission; `preemptions` are the ends of time bins and the engine's rate in each."""
    shape = (max(slots.values(), default=-1) + 1, scale.columns)
    starts, decodes, ends = _columns(stays, scale)
    latest = np.full(shape, -1, dtype=np.int64)
    for number, (stay, start, end) in enumerate(zip(stays, starts.tolist(), ends.tolist(), strict=True)):
        latest[slots[stay.id], start:end] = number
    owners = np.array([*(stay.id for stay in stays), -1], dtype=np.int64)[latest]
    sent = np.array([*(stay.sent for stay in stays), 0.0])[latest]
    begun = np.arange(scale.columns) >= np.append(decodes, 0)[latest]
    states = np.where(latest < 0, EMPTY, np.where(begun, DECODE, PREFILL))
    left, right = scale.window
    middles = left + (np.arange(scale.columns) + 0.5) * (right - left) / scale.columns
    ages = np.clip((middles - sent) / scale.shade, 0, len(AGES) - 1).astype(np.int64)
    states = np.where(states == DECODE, DECODE + ages, states)
    _draw_pauses(states, owners, stays, slots, scale, preemptions)
    for stay in stays:
        if stay.failed and left <= stay.until <= min(scale.until, right):
            at = min(scale.column(stay.until), scale.columns - 1)
            states[slots[stay.id], at], owners[slots[stay.id], at] = FAILED, stay.id
    return FilmGrid(states=states, owners=owners)


def _columns(stays: Sequence[BatchStay], scale: FilmScale) -> IntArray:
    """Return the first column of each stay, the first of decode, and the one after the last; zeros outside of the film.

    Shape (3, stays).
    """
    left, until = scale.window[0], min(scale.until, scale.window[1])
    admitted, first, ends = (
        np.array([(stay.admitted, stay.first_token_at, stay.until) for stay in stays]).reshape(-1, 3).T
    )
    start, decode = scale.columns_at(admitted), scale.columns_at(np.minimum(first, until))
    end = np.minimum(scale.columns_at(np.minimum(ends, until) - 1e-9) + 1, scale.columns)
    bright = (end - start >= _CELLS_WITH_PREFILL) & (admitted >= left)
    decode = np.minimum(np.where(bright, np.maximum(decode, start + 1), decode), end)
    outside = (ends < left) | (admitted > until) | (until <= left)
    return np.where(outside, 0, (start, decode, end))


def _draw_pauses(
    states: IntArray,
    owners: IntArray,
    stays: Sequence[BatchStay],
    slots: Mapping[int, int],
    scale: FilmScale,
    preemptions: tuple[FloatArray, FloatArray],
) -> None:
    """Mark the columns whose middle lies in a pause that has lasted long enough by the end of what is shown."""
    every = [(stay, pause) for stay in stays for pause in stay.pauses]
    if not every:
        return
    pauses = np.array([pause for _, pause in every])
    left, until = scale.window[0], scale.until
    ends = np.minimum(pauses[:, 1], until)
    preempted = are_preemptions(pauses, *preemptions)
    first = np.where(pauses[:, 0] < left, 0, scale.columns_at(pauses[:, 0]) + 1)
    last = np.maximum(scale.columns_at(ends), first + preempted)
    known = (ends - pauses[:, 0] >= SHORTEST_PAUSE) & (ends >= left)
    states_of = np.where(preempted, PREEMPTED, STALLED)
    for number in np.flatnonzero(known).tolist():
        stay, inside = every[number][0], slice(int(first[number]), int(last[number]))
        row, owner = states[slots[stay.id], inside], owners[slots[stay.id], inside]
        row[owner == stay.id] = states_of[number]


def film_row(states: IntArray, *, shaded: bool) -> list[Run]:
    """One slot as runs: `shaded` has a glyph for each state, otherwise prefill and ages differ by colour alone."""
    return [
        (glyph_of(state, shaded=shaded) * (stop - start), LOOKS[state][1]) for state, start, stop in _stretches(states)
    ]


def glyph_of(state: int, *, shaded: bool) -> str:
    """Return the glyph of a state in a row of its own."""
    return LOOKS[state][0] if shaded or not PREFILL <= state < STALLED else "▇"


def halved_row(upper: IntArray, lower: IntArray) -> list[Run]:
    """Return two slots as runs of half cells, distinguished by colour alone."""
    size = len(LOOKS)
    runs: list[Run] = []
    for code, start, stop in _stretches(upper * size + lower):
        high, low = divmod(code, size)
        runs.append(_half_cell(high, low, stop - start))
    return runs


def _half_cell(high: int, low: int, cells: int) -> Run:
    above, below = LOOKS[high][1], LOOKS[low][1]
    if max(high, low) <= UNRECORDED:
        return " ·:"[high + low] * cells, above or below
    if min(high, low) <= UNRECORDED:  # its dot has no half
        return ("▀" * cells, above) if high > low else ("▄" * cells, below)
    return ("█" * cells, above) if above == below else ("▀" * cells, f"{above}/{below}")


def _stretches(codes: IntArray) -> list[tuple[int, int, int]]:
    """Return each code with the start and the end of the cells that have it in a row."""
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    return [(int(codes[start]), start, stop) for start, stop in pairwise(edges) if stop > start]
