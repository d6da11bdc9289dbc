"""Which of a run's requests one sender sends, and under which numbers.

Every sender of a pool computes the same seeded schedule and counts its arrivals; the request of arrival number i is
sent by the (i mod A)-th of the A active senders. So the senders share nothing but the plan, the timed commands and the
clock that both refer to.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from typing import Protocol

from servetop.loadgen.messages import SenderReport, SenderSetup, StartedRequest, TimedCommand
from servetop.loadgen.request.prerender import NumberedPrompts, NumberedRequest
from servetop.loadgen.sender.ownership import Ownership, PartitionedPrompts, part_of
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.prompts.prompt_source import PromptSource
from servetop.workload.stages.stage_run import Due

_RECENT_ARRIVALS = 10_000
"""Arrivals that a late timed command can take back."""
_SKIPPED_AT_ONCE = 200
"""Prompts that a sender on standby skips at one heartbeat."""


class Partition(Protocol):
    """Selects and numbers the requests of one sender; `partition_for` chooses the implementation."""

    def prompts(self, source: PromptSource) -> NumberedPrompts:
        """Return the prompts of this sender's requests from now on; a number has the same prompt in every sender."""
        ...

    @property
    def working(self) -> bool:
        """This sender has requests to send: it is active, and the concurrency limit leaves it a slot."""
        ...

    def select(self, due: Due) -> NumberedRequest | None:
        """Count an arrival of the schedule and number it if this sender sends it, else None."""
        ...

    def claim(self, due: Due) -> NumberedRequest:
        """Number a request that belongs to this sender: of one of its user slots, or a later turn."""
        ...

    def earliest_start(self, now: float) -> float:
        """Return the earliest run time at which a plan that arrives now may begin."""
        ...

    def count_from(self, number: int | None) -> None:
        """Continue the numbering at `number` or above, as a plan prescribes; None: unchanged."""
        ...

    def limit_for(self, limit: int | None, *, number_from: int | None = None) -> int | None:
        """Return this sender's part of a concurrency limit.

        A change of the limit may change the working senders, and with them the owners of the requests from
        `number_from` on.
        """
        ...

    def connections(self, wanted: int) -> int:
        """Return this sender's part of the connections to open ahead of demand."""
        ...

    def apply(self, timed: TimedCommand) -> None:
        """Apply a change of the active senders; the schedule has been advanced to its time."""
        ...

    def skip_prompts(self) -> None:
        """On standby, skip some prompts that others use, so that work can begin at once."""
        ...

    def finish_report(self, report: SenderReport) -> SenderReport:
        """Add what the pool needs to outlive this sender."""
        ...


def partition_for(setup: SenderSetup) -> Partition:
    """Return the partition of one sender: everything, part of the requests, or part of the conversations."""
    if setup.workers == 1:
        return WholeLoad(setup.first_id)
    return ConversationPartition(setup) if setup.workload.conversational else RequestPartition(setup)


class WholeLoad(Partition):
    """The partition of a single sender: every request, numbered in order."""

    def __init__(self, first: int) -> None:
        self._next = first

    @property
    def working(self) -> bool:
        return True

    def prompts(self, source: PromptSource) -> NumberedPrompts:
        return enumerate(source.prompts())

    def select(self, due: Due) -> NumberedRequest:
        return self.claim(due)

    def claim(self, due: Due) -> NumberedRequest:
        number, self._next = self._next, self._next + 1
        return NumberedRequest(number, due)

    def earliest_start(self, now: float) -> float:
        return now

    def count_from(self, number: int | None) -> None:
        if number is not None:
            self._next = max(self._next, number)

    def limit_for(self, limit: int | None, *, number_from: int | None = None) -> int | None:  # noqa: ARG002
        return limit

    def connections(self, wanted: int) -> int:
        return wanted

    def apply(self, timed: TimedCommand) -> None:
        """Do nothing: no other sender can take over requests."""

    def skip_prompts(self) -> None:
        """Do nothing: a single sender is never on standby."""

    def finish_report(self, report: SenderReport) -> SenderReport:
        return report


class RequestPartition(Partition):
    """The partition of one of several senders for a load of independent requests.

    Numbers ascend, and no two senders use the same one: at each change of the working senders, all continue from a
    number that none of them has reached.
    """

    def __init__(self, setup: SenderSetup) -> None:
        self._worker = setup.worker
        self._arrivals = self._next = setup.first_id
        self._active = setup.active or tuple(range(setup.workers))
        self._ownership = Ownership(setup.worker, self._active, first=setup.first_id)
        self._limit: int | None = None
        self._own_limit: int | None = None if setup.worker in self._active else 0
        self._recent: deque[float] = deque(maxlen=_RECENT_ARRIVALS)
        self._started: list[StartedRequest] = []
        self._prompts: PartitionedPrompts | None = None

    def prompts(self, source: PromptSource) -> NumberedPrompts:
        self._prompts = PartitionedPrompts(source, self._ownership, first=self._arrivals)
        return self._prompts

    @property
    def working(self) -> bool:
        return self._worker in self._ownership.working

    def select(self, due: Due) -> NumberedRequest | None:
        arrival, self._arrivals = self._arrivals, self._arrivals + 1
        self._recent.append(due.at)
        return self._number(due, arrival) if self._ownership.owns(arrival) else None

    def claim(self, due: Due) -> NumberedRequest:
        return self._number(due, 0)

    def _number(self, due: Due, at_least: int) -> NumberedRequest:
        number = self._take_number(at_least)
        self._started.append(StartedRequest(number=number, stage=due.stage, due=due.at))
        return NumberedRequest(number, due, number)

    def _take_number(self, at_least: int) -> int:
        number = max(at_least, self._next)
        while not self._ownership.owns(number):
            number += 1
        self._next = number + 1
        return number

    def earliest_start(self, now: float) -> float:  # noqa: ARG002
        """Return -inf: all senders begin at the plan's time, so that their schedules agree."""
        return float("-inf")

    def count_from(self, number: int | None) -> None:
        if number is not None:
            self._arrivals, self._next = max(self._arrivals, number), max(self._next, number)

    def limit_for(self, limit: int | None, *, number_from: int | None = None) -> int | None:
        """Return this sender's slots; if the limit is below the number of senders, the first ones get one slot each."""
        if limit != self._limit:
            self._limit = limit
            self._change_working(number_from)
        return self._own_limit

    def _change_working(self, number_from: int | None) -> None:
        working = self._active if self._limit is None else self._active[: self._limit]
        if working != self._ownership.working:
            unused_from = self._next
            self.count_from(number_from)
            self._ownership.change(working, unused_from=unused_from, first=self._arrivals)
        if self._worker not in working:
            self._own_limit = 0
        else:
            rank = working.index(self._worker)
            self._own_limit = None if self._limit is None else part_of(self._limit, rank, len(working))

    def connections(self, wanted: int) -> int:
        """Return this sender's part, at least one if it is working and any are wanted."""
        working = self._ownership.working
        if not wanted or self._worker not in working:
            return 0
        return max(1, part_of(wanted, working.index(self._worker), len(working)))

    def apply(self, timed: TimedCommand) -> None:
        """Change the active senders; arrivals after the command's time, if it is late, are not counted.

        Senders that received the command in time have not counted those arrivals yet.
        """
        while self._recent and self._recent[-1] > timed.at:
            self._recent.pop()
            self._arrivals -= 1
        if timed.active is not None:
            self._active = timed.active
            self._change_working(timed.number_from)

    def skip_prompts(self) -> None:
        if self._prompts is not None and not self.working:
            self._prompts.skip(min(_SKIPPED_AT_ONCE, self._arrivals - self._prompts.position))

    @property
    def next_number(self) -> int:
        """Lowest number that neither this sender's arrivals nor its own requests have reached."""
        return max(self._arrivals, self._next)

    def finish_report(self, report: SenderReport) -> SenderReport:
        """Add the requests started since the last report and the next unused number."""
        started, self._started = tuple(self._started), []
        return dataclasses.replace(report, started=started, next_number=self.next_number)


class ConversationPartition(RequestPartition):
    """The partition of one of several senders for a load of conversations.

    Conversations are numbered and distributed like independent requests. Their turns have ids in steps of the number of
    senders, because a sender cannot know how many turns the others send.
    """

    def __init__(self, setup: SenderSetup) -> None:
        super().__init__(setup)
        self._turn_ids = itertools.count(setup.first_id + setup.worker, setup.workers)

    def _number(self, due: Due, at_least: int) -> NumberedRequest:
        number = next(self._turn_ids)
        turn = due.prompt if isinstance(due.prompt, TurnPrompt) else None
        self._started.append(
            StartedRequest(
                number=number,
                stage=due.stage,
                due=due.at,
                conversation=number if turn is None or turn.conversation is None else turn.conversation,
                turn=1 if turn is None else turn.turn,
            )
        )
        return NumberedRequest(number, due, self._take_number(at_least) if due.prompt is None else 0)
