"""What several senders report of one tick, as if one had done it all."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

import numpy as np

from servetop.core.events import Action, Command, Note, RequestRecord, RequestStatus, StageChange
from servetop.core.tick import ClientTick, LoadGauges, merge_client_ticks
from servetop.loadgen.messages import BegunRequest, SenderReport
from servetop.workload.plan import LoadPhase

_SLOWEST_FIRST = (LoadPhase.IDLE, LoadPhase.RUNNING, LoadPhase.DRAINING, LoadPhase.FINISHED)
_NUMBER = re.compile(r"\d+")
LOST = "lost with its sender, which died"
"""Error of a request that was in flight."""


def slowest(states: Sequence[LoadPhase]) -> LoadPhase:
    """What the load as a whole is doing; finished when nobody has anything to do."""
    return min(states, key=_SLOWEST_FIRST.index, default=LoadPhase.FINISHED)


def merged_tick(parts: Mapping[int, SenderReport], *, lost: int) -> ClientTick:
    """The sum; the rate is the schedule's, which all play, and requests lost with a sender count as errors."""
    gauges = [report.tick.gauges for report in parts.values()]
    limits = [each.max_concurrency for each in gauges if each.max_concurrency]  # not those who stand by
    whole = LoadGauges(
        stage=max(each.stage for each in gauges),
        request_rate=next((each.request_rate for each in gauges if each.request_rate is not None), None),
        max_concurrency=sum(limits) if limits else None,
        in_flight=sum(each.in_flight for each in gauges),
        queued=sum(each.queued for each in gauges),
        holding=any(each.holding for each in gauges),
        paused=any(each.paused for each in gauges),
    )
    tick = merge_client_ticks([report.tick for report in parts.values()], gauges=whole)
    return dataclasses.replace(tick, gauges=whole, errors=tick.errors + lost)


def merged_notes(parts: Mapping[int, SenderReport]) -> list[Note]:
    """What all say is said once; what one says is said with its number."""
    said: dict[str, list[int]] = {}
    first: dict[str, Note] = {}
    for worker, report in parts.items():
        for note in report.notes:
            said.setdefault(note.text, []).append(worker)
            first.setdefault(note.text, note)
    return [
        note if len(said[text]) > 1 else dataclasses.replace(note, text=f"sender {said[text][0]}: {text}")
        for text, note in first.items()
    ]


def new_stages(parts: Mapping[int, SenderReport], told: set[int]) -> list[StageChange]:
    """Stages that nobody has told of yet; they are added to what is told."""
    fresh = []
    for report in parts.values():
        for stage in report.stages:
            if stage.index not in told:
                told.add(stage.index)
                fresh.append(stage)
    return fresh


def one_reply(replies: Sequence[Command]) -> Command:
    """The fleet's reply, out of those of its senders, the first of which speaks; what it counts is added up."""
    first = replies[0]
    if first.action not in (Action.STOP, Action.CANCEL):
        return first
    counts = [int(found.group()) for each in replies if (found := _NUMBER.search(each.reply or ""))]
    return dataclasses.replace(first, reply=_NUMBER.sub(str(sum(counts)), first.reply or "", count=1))


def lost_words(lost: Sequence[RequestRecord]) -> str:
    """What the death of a sender cost, as far as its last report tells."""
    words = f"{len(lost)} requests in flight are lost, and what it began since its last report"
    return f"{words}; its conversations end" if any(each.turn is not None for each in lost) else words


def lost_record(begun: BegunRequest, *, worker: int) -> RequestRecord:
    """A request that was in flight when its sender died: when it was due is known, what came of it is not."""
    return RequestRecord(
        id=begun.number,
        stage=begun.stage,
        due=begun.due,
        prompt_tokens=0,
        status=RequestStatus.ERROR,
        error=LOST,
        worker=worker,
        conversation=begun.conversation,
        turn=begun.turn,
        chunk_times=np.empty(0),
        chunk_tokens=np.empty(0, dtype=np.int64),
    )
