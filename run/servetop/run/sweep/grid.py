"""The cells of a sweep: all combinations of some lists, without those that are excluded, and single cells; in order.

Nothing here knows what the keys mean: docs/how-to/sweep.md does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from servetop.core.errors import UsageError

Values = Mapping[str, Any]
"""What a cell sets, by key."""
_Cell = TypeVar("_Cell")
MOST_CELLS = 10_000
REPEATS = "repeats"
"""Value of `restart`: each repeat has a start of the engine of its own."""


class Order(StrEnum):
    """In which order cells and their repeats are measured."""

    FEWEST_RESTARTS = "fewest-restarts"
    """Cells of one engine follow each other, and so do the repeats of a cell."""
    SHUFFLED = "shuffled"
    """Each round of repeats in a random order of its own, by the seed."""
    ABBA = "ABBA"
    """Each second round of repeats in the reverse order."""

    @classmethod
    def parse(cls, text: str) -> Order:
        """Return the order with this name; UsageError if there is none."""
        found = next((each for each in cls if text.lower() == each.lower()), None)
        if found is None:
            raise UsageError(f"order = {text!r}: use {', '.join(cls)}")
        return found


def parse_restart(text: str) -> str:
    """Return a value of `restart`; UsageError if it is none."""
    if text != REPEATS:
        raise UsageError(
            f"restart = {text!r}: use {REPEATS!r} for a restart of the engine between repeats, or leave it out"
        )
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What a sweep varies."""

    lists: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values by key; the last key varies fastest."""
    zipped: Sequence[Sequence[str]] = ()
    """Keys whose lists are read side by side: the first values together, then the second ones, ..."""
    exclude: Sequence[Values] = ()
    """Values that no combination may have together."""
    cells: Sequence[Values] = ()
    """Single cells, after the combinations."""


def combinations(grid: Grid, *, where: str) -> list[Values]:
    """Return the cells of a grid; UsageError for one that contradicts itself."""
    axes = _axes(grid, where=where)
    count = 1
    for axis in axes:
        count *= len(axis)
    if count > MOST_CELLS:
        raise UsageError(
            f"{where}: {count:,} combinations: a sweep has at most {MOST_CELLS:,}, use shorter lists or zip"
        )
    product = [_joined(parts, grid.lists) for parts in itertools.product(*axes)] if axes or not grid.cells else []
    kept = _without(product, grid, where=where)
    for number, cell in enumerate(grid.cells, start=1):
        if any(_same(cell, other) for other in kept):
            raise UsageError(f"{where}: [[cell]] {number} is in the sweep already: leave it out")
        kept.append(cell)
    if not kept:
        raise UsageError(f"{where}: exclude leaves no cell of {len(product):,}: exclude less")
    return kept


def _axes(grid: Grid, *, where: str) -> list[list[Values]]:
    """Return the lists that are combined; zipped keys make one, in the place of the first of them."""
    partners: dict[str, Sequence[str]] = {}
    for group in grid.zipped:
        _check_zip(group, grid, taken=partners, where=where)
        partners |= dict.fromkeys(group, group)
    axes: list[list[Values]] = []
    for key in grid.lists:
        group = partners.get(key, (key,))
        if key == next(each for each in grid.lists if each in group):
            rows = zip(*(grid.lists[each] for each in group), strict=True)
            axes.append([dict(zip(group, row, strict=True)) for row in rows])
    return axes


def _check_zip(group: Sequence[str], grid: Grid, *, taken: Mapping[str, object], where: str) -> None:
    unknown = next((key for key in group if key not in grid.lists), None)
    if unknown is not None:
        raise UsageError(f"{where}: zip names {unknown!r}, which has no list: give it one, or leave it out of zip")
    if len(group) < 2 or len(set(group)) != len(group) or any(key in taken for key in group):
        raise UsageError(f"{where}: zip = {list(group)}: name at least two keys, each in one zip only")
    lengths = [len(grid.lists[key]) for key in group]
    if len(set(lengths)) > 1:
        listed = ", ".join(f"{key} {length}" for key, length in zip(group, lengths, strict=True))
        raise UsageError(f"{where}: zip needs lists of one length, but values are: {listed}")


def _joined(parts: Iterable[Values], order: Iterable[str]) -> Values:
    joined: dict[str, Any] = {}
    for part in parts:
        joined |= part
    return {key: joined[key] for key in order}


def _without(cells: Sequence[Values], grid: Grid, *, where: str) -> list[Values]:
    kept = list(cells)
    for excluded in grid.exclude:
        unknown = next((key for key in excluded if key not in grid.lists), None)
        if unknown is not None or not excluded:
            raise UsageError(f"{where}: exclude names {unknown!r}, which has no list: use {', '.join(grid.lists)}")
        left = [cell for cell in kept if not all(_equal(cell[key], value) for key, value in excluded.items())]
        if len(left) == len(kept):
            raise UsageError(f"{where}: exclude = {dict(excluded)} matches no cell: use values of the lists")
        kept = left
    return kept


def _same(one: Values, other: Values) -> bool:
    return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) or str(one) == str(other)


def in_order(
    cells: Sequence[_Cell],
    repeats: int,
    *,
    order: Order,
    seed: int,
    engine: Callable[[_Cell], object],
    in_rounds: bool = False,
) -> list[tuple[_Cell, int]]:
    """Return each cell with the number of its repeat, from 0, in the order in which they are measured.

    `engine` returns what a cell needs of the engine: cells with equal needs follow each other, in the order in which
    the needs first appear, unless the order is shuffled. With `in_rounds` all cells are measured once before the first
    one is repeated, in any order.
    """
    needs = list(map(engine, cells))
    place = [needs.index(need) for need in needs]
    grouped = [cells[each] for each in sorted(range(len(cells)), key=lambda each: place[each])]
    if order is Order.FEWEST_RESTARTS and not in_rounds:
        return [(cell, repeat) for cell in grouped for repeat in range(repeats)]
    rounds: list[tuple[_Cell, int]] = []
    draws = random.Random(seed)
    for repeat in range(repeats):
        row = list(reversed(grouped)) if order is Order.ABBA and repeat % 2 else list(grouped)
        if order is Order.SHUFFLED:
            draws.shuffle(row)
        rounds += [(cell, repeat) for cell in row]
    return rounds
