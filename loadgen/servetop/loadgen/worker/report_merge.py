"""Merges the reports of several senders into one, as if a single sender had done all the work."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from servetop.core.events import Command, Note, StageChange
from servetop.core.interfaces.request_in_flight import MOST_IN_FLIGHT, RequestInFlight
from servetop.core.tick import ClientTick, LoadGauges, merge_client_ticks, worst_class
from servetop.loadgen.messages import SenderReport
from servetop.loadgen.sender.live_commands import stop_reply
from servetop.workload.stages.plan import LoadPhase

_SLOWEST_FIRST = (LoadPhase.IDLE, LoadPhase.RUNNING, LoadPhase.DRAINING, LoadPhase.FINISHED)


def slowest_phase(phases: Sequence[LoadPhase]) -> LoadPhase:
    """Return the phase of the load as a whole; finished if no sender has anything to do."""
    return min(phases, key=_SLOWEST_FIRST.index, default=LoadPhase.FINISHED)


def merge_ticks(reports: Mapping[int, SenderReport], *, lost: int) -> ClientTick:
    """Return the sum of one tick's reports, by sender; `lost` requests of senders that died count as errors.

    The request rate is that of the schedule, which all senders follow.
    """
    gauges = [report.tick.gauges for report in reports.values()]
    limits = [each.max_concurrency for each in gauges if each.max_concurrency]  # without senders on standby
    merged = LoadGauges(
        stage=max(each.stage for each in gauges),
        request_rate=next((each.request_rate for each in gauges if each.request_rate is not None), None),
        max_concurrency=sum(limits) if limits else None,
        in_flight=sum(each.in_flight for each in gauges),
        queued=sum(each.queued for each in gauges),
        holding=any(each.holding for each in gauges),
        paused=any(each.paused for each in gauges),
        sender_class=worst_class(each.sender_class for each in gauges),
    )
    tick = merge_client_ticks([report.tick for report in reports.values()], gauges=merged)
    return dataclasses.replace(tick, gauges=merged, errors=tick.errors + lost)


def merge_in_flight(reports: Mapping[int, SenderReport]) -> tuple[RequestInFlight, ...] | None:
    """Return the last MOST_IN_FLIGHT requests in flight of all senders, by due time; None if no sender reports any."""
    reported = [report.in_flight for report in reports.values() if report.in_flight is not None]
    every = sorted((request for part in reported for request in part), key=lambda request: request.due)
    return tuple(every[-MOST_IN_FLIGHT:]) if reported else None


def merge_notes(reports: Mapping[int, SenderReport]) -> list[Note]:
    """Return a note that several senders sent once, and one of a single sender with that sender's number."""
    senders: dict[str, list[int]] = {}
    first: dict[str, Note] = {}
    for worker, report in reports.items():
        for note in report.notes:
            senders.setdefault(note.text, []).append(worker)
            first.setdefault(note.text, note)
    return [
        note if len(senders[text]) > 1 else dataclasses.replace(note, text=f"sender {senders[text][0]}: {text}")
        for text, note in first.items()
    ]


def new_stages(reports: Mapping[int, SenderReport], reported: set[int]) -> list[StageChange]:
    """Return the stages that no sender has reported before, and add them to `reported`."""
    found = []
    for report in reports.values():
        for stage in report.stages:
            if stage.index not in reported:
                reported.add(stage.index)
                found.append(stage)
    return found


class _SenderReply(NamedTuple):
    worker: int
    command: Command
    requests: int | None
    """How many requests the reply counts; None: it counts none."""


class ReplyMerger:
    """Merges the senders' replies to each command into one."""

    def __init__(self) -> None:
        self._replies: dict[int, list[_SenderReply]] = {}

    def add(self, reports: Mapping[int, SenderReport]) -> None:
        """Add the replies of one tick's reports, by sender."""
        for worker, report in reports.items():
            for reply in report.replies:
                sent = _SenderReply(worker, reply, report.reply_counts.get(reply.id))
                self._replies.setdefault(reply.id, []).append(sent)

    def complete(self, *, alive: set[int], playing: set[int]) -> Iterator[Command]:
        """Yield the merged reply of each command that all living senders have replied to."""
        for key, replies in list(self._replies.items()):
            if alive <= {each.worker for each in replies}:
                del self._replies[key]
                yield _merge_replies([each for each in replies if each.worker in playing] or replies)


def _merge_replies(replies: Sequence[_SenderReply]) -> Command:
    """Return the first sender's reply; where the replies count requests, with the sum of all."""
    command, counts = replies[0].command, [each.requests for each in replies if each.requests is not None]
    return dataclasses.replace(command, reply=stop_reply(command.action, sum(counts))) if counts else command
