"""Reads the requests of several selections, such as those of a run and of its stages, in one scan of the table."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from servetop.analysis.columns.request_columns import RequestColumns, narrowed
from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.arrays import FloatArray, IntArray
from servetop.recordings.read.load_requests import (
    NARROW,
    Chunked,
    Rows,
    Selection,
    gathered,
    load_requests,
    request_blocks,
    sum_of,
)
from servetop.recordings.read.reader import RecordingReader

MOST_KEPT = 4_000_000
"""Distinct gaps between tokens, and seconds with their tokens, that are kept for all selections, of 16 bytes each."""
_PENDING_GAPS = 1_000_000
"""Gaps that wait to be merged, or more: as many as were merged before."""
_Group = frozenset[Selection]
"""The selections that have the same requests of a stage."""


class SelectedRequests:
    """The requests of selections that are known beforehand: one scan reads all of them when the first is asked for.

    If these would take too much memory, only the first selection is kept, and the others are read one by one, as any
    other selection is.
    """

    def __init__(
        self,
        reader: RecordingReader,
        selections: Sequence[Selection],
        *,
        others: Sequence[str] = (),
        most: int = MOST_KEPT,
    ) -> None:
        """`others` are optional columns, beside `stage`; selections have no model and no replica."""
        self._reader, self._others = reader, ("stage", *(name for name in others if name != "stage"))
        self._known = tuple(dict.fromkeys(selections))
        self._by_stage = _by_stage(self._known)
        self._most = most
        self._groups = _Groups()
        self._requests: RequestColumns | None = None

    def of(self, selection: Selection) -> RequestColumns:
        """Return the requests of a selection as `load_requests` does; RecordingError if they cannot be read."""
        if self._requests is None and selection in self._known:
            self._scan()
        requests = self._requests
        if requests is None or selection not in self._known:
            return load_requests(self._reader, selection, others=self._others)
        chosen = selection.chosen(requests.others["stage"], requests.due)
        found = requests if chosen.all() else requests.part(chosen)
        narrow: dict[str, Any] = {
            name: narrowed(values) for name in NARROW if (values := getattr(found, name)).dtype == np.float64
        }
        gaps, by_second = self._groups.of(selection)
        return dataclasses.replace(found, **narrow, itl=gaps, tokens_by_second=by_second)

    def _scan(self) -> None:
        blocks = request_blocks(self._reader, Selection(), (*self._others, "chunk_times"), measure=self._measured)
        columns, gaps, by_second = gathered(blocks)
        others = {name: columns.pop(name) for name in self._others}
        self._requests = RequestColumns(**columns, itl=gaps, tokens_by_second=by_second, others=others)

    def _measured(self, rows: Rows) -> RequestColumns:
        """Return the requests of a block that are selected, in its order, and add up gaps and tokens by group."""
        groups, keys = self._grouped(rows["stage"], rows["due"])
        order = np.argsort(keys, kind="stable")
        order = order[np.searchsorted(keys[order], 0) :]
        moved = order.size < keys.size or len(groups) > 1
        chunked = Chunked.of({name: values[order] for name, values in rows.items()} if moved else rows)
        bounds = np.searchsorted(keys[order], np.arange(len(groups) + 1))
        for group, (first, stop) in zip(groups, itertools.pairwise(map(int, bounds)), strict=True):
            self._groups.add(group, *chunked.gaps_and_tokens(first, stop))
        if self._groups.size > self._most and len(self._known) > 1:
            self._known = self._known[:1]
            self._by_stage = _by_stage(self._known)
            self._groups.keep_only(*self._known)
        return chunked.columns.part(np.argsort(order)) if moved else chunked.columns

    def _grouped(self, stages: FloatArray, due: FloatArray) -> tuple[list[_Group], IntArray]:
        """Return the groups of a block, and the place of the group of each request among them; -1 for none."""
        groups: list[_Group] = []
        keys = np.full(due.size, -1, dtype=np.int64)
        for stage in np.unique(stages):
            places = np.flatnonzero(np.isnan(stages) if np.isnan(stage) else stages == stage)
            near = [*self._by_stage.get(None, ()), *self._by_stage.get(float(stage), ())]
            codes = np.zeros(places.size, dtype=np.int64)
            for bit, selection in enumerate(near):
                codes |= selection.chosen(stages[places], due[places]).astype(np.int64) << bit
            for code in map(int, np.unique(codes)):
                if code:
                    keys[places[codes == code]] = len(groups)
                    groups.append(frozenset(each for bit, each in enumerate(near) if code >> bit & 1))
        return groups, keys


def _by_stage(selections: Sequence[Selection]) -> Mapping[float | None, Sequence[Selection]]:
    found: dict[float | None, list[Selection]] = {}
    for each in selections:
        found.setdefault(each.stage, []).append(each)
    return found


class _Groups:
    """The gaps between tokens, and the tokens of each second, of groups of requests."""

    def __init__(self) -> None:
        self._gaps: dict[_Group, list[Distribution]] = defaultdict(list)
        self._by_second: dict[_Group, FloatArray] = defaultdict(lambda: np.empty(0))
        self._pending = 0
        self._distinct = 0

    @property
    def size(self) -> int:
        """The distinct gaps of all groups when they were last merged, and the seconds of all groups."""
        return self._distinct + sum(each.size for each in self._by_second.values())

    def add(self, group: _Group, gaps: Distribution, by_second: FloatArray) -> None:
        """Add those of further requests of a group."""
        self._gaps[group].append(gaps)
        self._by_second[group] = sum_of(self._by_second[group], by_second)
        self._pending += gaps.values.size
        if self._pending > max(self._distinct, _PENDING_GAPS):
            self._merge()

    def of(self, selection: Selection) -> tuple[Distribution, FloatArray]:
        """Return those of all groups of a selection."""
        gaps = [each for group, parts in self._gaps.items() if selection in group for each in parts]
        by_second = np.empty(0)
        for group, tokens in self._by_second.items():
            by_second = sum_of(by_second, tokens) if selection in group else by_second
        return Distribution.merged(gaps), by_second

    def keep_only(self, selection: Selection) -> None:
        """Forget all that another selection needs."""
        gaps, by_second = self.of(selection)
        self._gaps.clear()
        self._by_second.clear()
        self._distinct = 0
        self.add(frozenset([selection]), gaps, by_second)

    def _merge(self) -> None:
        for group, parts in self._gaps.items():
            self._gaps[group] = [Distribution.merged(parts)]
        self._distinct = sum(parts[0].values.size for parts in self._gaps.values())
        self._pending = 0
