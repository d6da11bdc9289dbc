"""Splits a plan where several senders must wait for each other, and each part among the senders. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from servetop.core.config import StageConfig
from servetop.loadgen.sender.ownership import part_of
from servetop.workload.stages.plan import LoadPlan


def split_plan(plan: LoadPlan) -> list[LoadPlan]:
    """Split after each stage that drains and each closed loop, whose end no single sender can determine.

    The stages of one subplan follow each other at times that all senders compute alike.
    """
    groups: list[list[tuple[int, StageConfig]]] = [[]]
    for index, stage in plan.segments:
        groups[-1].append((index, stage))
        if plan.drain_at_stages or stage.warmup or is_closed_loop(stage):
            groups.append([])
    left = len(plan.segments)
    subplans = []
    for group in filter(None, groups):
        left -= len(group)
        subplans.append(dataclasses.replace(plan, segments=tuple(group), followed_by=left))
    return subplans


def is_closed_loop(stage: StageConfig) -> bool:
    """Whether a request of the stage is due whenever the concurrency limit has room."""
    return math.isinf(stage.request_rate) and stage.max_concurrency is not None


def must_drain(subplan: LoadPlan) -> bool:
    """Whether the next subplan waits until every request of this one has ended."""
    return subplan.drain_at_stages or subplan.segments[-1][1].warmup


def subplan_for(subplan: LoadPlan, worker: int, active: Sequence[int]) -> LoadPlan | None:
    """Return one sender's part of a subplan; None if it has none.

    An open loop is the same for all senders; the requests of a closed loop are divided like its user slots.
    """
    index, stage = subplan.segments[0]
    if not is_closed_loop(stage) or stage.num_prompts is None:
        return subplan
    working = active[: stage.max_concurrency]
    if worker not in working:
        return None
    first = subplan.first_number or 0
    count = _requests_of(stage, working.index(worker), among=len(working), first=first)
    if not count:
        return None
    return dataclasses.replace(subplan, segments=((index, dataclasses.replace(stage, num_prompts=count)),))


def _requests_of(stage: StageConfig, rank: int, *, among: int, first: int) -> int:
    """Return a sender's number of requests: those whose numbers it owns if all senders have equally many slots.

    Otherwise they are divided in proportion to the slots. A warm-up, which is not measured, always goes by numbers, so
    that the measured requests have the same numbers as with a single sender.
    """
    count, slots = stage.num_prompts or 0, stage.max_concurrency or among
    if stage.warmup or slots % among == 0:
        return part_of(first + count, rank, among) - part_of(first, rank, among)
    return count // slots * part_of(slots, rank, among) + part_of(count % slots, rank, among)
