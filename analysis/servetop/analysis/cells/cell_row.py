"""Rows of a sweep: cells that differ only in their load, a request rate or the concurrency of a closed loop."""

from __future__ import annotations

import dataclasses
import math

from servetop.core.config import StageConfig


def is_same_cell(one: StageConfig, other: StageConfig) -> bool:
    """Whether two planned stages are repeats of one cell, or the same one."""
    return dataclasses.replace(one, repeat=0) == dataclasses.replace(other, repeat=0)


def is_higher(cell: StageConfig, than: StageConfig) -> bool:
    """Whether a cell is in the row of another one and has a higher load.

    The load is the request rate, of cells with one concurrency limit; of two closed loops it is the limit.
    """
    if cell.warmup or than.warmup or _setting(cell) != _setting(than):
        return False
    limits = [math.inf if each.max_concurrency is None else each.max_concurrency for each in (cell, than)]
    if limits[0] == limits[1]:
        return cell.request_rate > than.request_rate
    closed = math.isinf(cell.request_rate) and math.isinf(than.request_rate)
    return closed and limits[0] > limits[1]


def _setting(stage: StageConfig) -> tuple[object, ...]:
    return stage.max_num_seqs, dict(stage.settings)
