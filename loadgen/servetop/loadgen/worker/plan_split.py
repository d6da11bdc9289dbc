"""A plan cut where several senders must wait for each other, and each sender's part of a piece. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from servetop.core.config import StageConfig
from servetop.loadgen.sender.partition import part_of
from servetop.workload.plan import LoadPlan


def pieces_of(plan: LoadPlan) -> list[LoadPlan]:
    """Cut after each stage that drains and after each closed loop: how long that takes, no sender can know alone.

    The stages of one piece follow each other by due times, which all senders compute alike.
    """
    groups: list[list[tuple[int, StageConfig]]] = [[]]
    for index, stage in plan.segments:
        groups[-1].append((index, stage))
        if plan.drain_at_stages or stage.warmup or is_closed(stage):
            groups.append([])
    kept = [tuple(group) for group in groups if group]
    left = len(plan.segments)
    pieces = []
    for group in kept:
        left -= len(group)
        pieces.append(dataclasses.replace(plan, segments=group, followed_by=left))
    return pieces


def is_closed(stage: StageConfig) -> bool:
    """Its requests are due whenever there is room."""
    return math.isinf(stage.request_rate) and stage.max_concurrency is not None


def must_drain(piece: LoadPlan) -> bool:
    """What follows waits until all answers of this piece are there."""
    return piece.drain_at_stages or piece.segments[-1][1].warmup


def share_of(piece: LoadPlan, worker: int, active: Sequence[int]) -> LoadPlan | None:
    """What one sender is to play; None when it has no part in it.

    An open loop is the same for all. The requests of a closed loop with an end are shared out as its places are.
    """
    index, stage = piece.segments[0]
    if not is_closed(stage) or stage.num_prompts is None:
        return piece
    team = active[: stage.max_concurrency]
    count = (
        _requests(stage, team.index(worker), among=len(team), first=piece.first_number or 0) if worker in team else 0
    )
    return (
        dataclasses.replace(piece, segments=((index, dataclasses.replace(stage, num_prompts=count)),))
        if count
        else None
    )


def _requests(stage: StageConfig, rank: int, *, among: int, first: int) -> int:
    """By the numbers that are the sender's own, where its places are as many as those of the others; else by places.

    A warm-up, whose figures nobody reads, always goes by numbers, so that the measured requests have the numbers that
    they have with one sender.
    """
    count, places = stage.num_prompts or 0, stage.max_concurrency or among
    if stage.warmup or places % among == 0:
        return part_of(first + count, rank, among) - part_of(first, rank, among)
    return count // places * part_of(places, rank, among) + part_of(count % places, rank, among)
