"""All scrapes of an engine's further series, in order; packed, and unpacked for the few instants that are needed."""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.scratch import Pieces, Scratch
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.interfaces.series_scrape import MAX_SERIES, MergedScrape, SeriesScrape, unpack_numbers

_CACHED_ROWS = 256


@dataclass(frozen=True, slots=True)
class SeriesName:
    """The name of a series on the metrics page, and its labels."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> SeriesName:
        """Parse `name{label=value,…}` as `__str__` writes it; a comma or brace in a value was replaced before."""
        name, _, rest = text.partition("{")
        pairs = [pair.partition("=") for pair in rest.removesuffix("}").split(",") if "=" in pair]
        return cls(name, tuple((label, value) for label, _, value in pairs))

    def __str__(self) -> str:
        labels = ",".join(f"{label}={value}" for label, value in self.labels)
        return f"{self.name}{{{labels}}}" if labels else self.name

    def label(self, name: str) -> str | None:
        """Return the value of a label; None without it."""
        return dict(self.labels).get(name)


class ScrapeHistory:
    """Scrapes in order of time; `columns` has every series that one of them contained, and only grows."""

    def __init__(self, scratch: Scratch | None = None) -> None:
        self.columns: list[SeriesName] = []
        self._times = array("d")
        self._layouts: list[IntArray] = []
        """Different lists of series: the columns of each one's values."""
        self._in_order: list[bool] = []
        """Whether the values of each of them are those of the first columns, in their order."""
        self._widths = array("l")
        """How many columns were known with each of them."""
        self._layout_of = array("l")
        self._counts = array("l")
        """How many scrapes each one stands for."""
        self._rows = Pieces(Scratch() if scratch is None else scratch)
        self._numbers: dict[str, int] = {}
        self._cache: dict[int, FloatArray] = {}

    def __len__(self) -> int:
        return len(self._times)

    def extend(self, scrapes: Iterable[SeriesScrape]) -> None:
        """Append scrapes; one that is out of order, damaged or before the first list of names is omitted."""
        for scrape in scrapes:
            if scrape.names is not None:
                self._add_layout(self._columns_of(scrape.name_list))
            if self._layouts and (not self._times or scrape.at >= self._times[-1]):
                self._times.append(scrape.at)
                self._layout_of.append(len(self._layouts) - 1)
                self._counts.append(scrape.count if isinstance(scrape, MergedScrape) else 1)
                self._rows.append(scrape.numbers)

    def _add_layout(self, columns: IntArray) -> None:
        if not self._layouts or not np.array_equal(self._layouts[-1], columns):  # the names are repeated regularly
            self._layouts.append(columns)
            self._in_order.append(np.array_equal(columns, np.arange(columns.size)))
            self._widths.append(len(self.columns))

    def _columns_of(self, names: Sequence[str]) -> IntArray:
        for name in names:
            if name not in self._numbers and len(self.columns) < MAX_SERIES:
                self._numbers[name] = len(self.columns)
                self.columns.append(SeriesName.parse(name))
        return np.array([self._numbers.get(name, -1) for name in names], dtype=np.int64)

    def up_to(self, at: float) -> int:
        """Return the number of scrapes that ended at `at` or before."""
        return bisect.bisect_right(self._times, at + 1e-9)

    def known_columns(self, position: int) -> int:
        """Return how many of the columns a scrape and those before it contained: the first ones."""
        return self._widths[self._layout_of[position]]

    def times(self, positions: Sequence[int]) -> FloatArray:
        """Return the times of some scrapes in seconds; shape (positions,)."""
        return np.array([self._times[position] for position in positions], dtype=np.float64)

    def counts(self, positions: Sequence[int]) -> FloatArray:
        """Return how many scrapes some of them stand for, including themselves; shape (positions,)."""
        return np.array([self._counts[position] for position in positions], dtype=np.float64)

    def values(self, positions: Sequence[int]) -> FloatArray:
        """Return the values of some scrapes, NaN where one lacks a series; shape (positions, columns)."""
        table = np.full((len(positions), len(self.columns)), np.nan)
        read = self._row if len(positions) <= _CACHED_ROWS else self._unpacked
        for row, position in enumerate(positions):
            values = read(position)
            table[row, : values.size] = values
        return table

    def _row(self, position: int) -> FloatArray:
        row = self._cache.get(position)
        if row is None:
            row = self._unpacked(position)
            if len(self._cache) >= _CACHED_ROWS:
                del self._cache[next(iter(self._cache))]
            self._cache[position] = row
        return row

    def _unpacked(self, position: int) -> FloatArray:
        """Return the values of a scrape by column, up to its last column; NaN for all if it is damaged."""
        layout = self._layout_of[position]
        columns = self._layouts[layout]
        if self._in_order[layout]:
            numbers = unpack_numbers(self._rows[position], count=columns.size)
            return np.full(columns.size, np.nan) if numbers is None else np.frombuffer(numbers, "<f8")
        row = np.full(int(columns.max(initial=-1)) + 1, np.nan)
        numbers = unpack_numbers(self._rows[position], count=columns.size)
        if numbers is not None:
            known = columns >= 0
            row[columns[known]] = np.frombuffer(numbers, "<f8")[known]
        return row
