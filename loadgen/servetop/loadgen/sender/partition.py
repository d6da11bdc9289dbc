"""How one load is dealt out to several senders, each of which plays the whole schedule and sends its own share of it.

Every sender computes the same seeded arrivals and counts them; the request of arrival number i is sent by the
(i mod A)-th of the A senders at work. So they share nothing but the plan, the orders, and the clock that both are
timed by. With one sender, all of this is counting.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Iterator

from servetop.core.interfaces.dialect import Prompt
from servetop.loadgen.messages import BegunRequest, SenderReport, SenderSetup, TimedCommand
from servetop.loadgen.request.prerender import PrerenderQueue
from servetop.loadgen.request.request_state import PreparedRequest
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.prompts.prompt_source import PromptSource
from servetop.workload.stage_run import Due

_PRIME = 1_000_003
_RECENT = 10_000
"""Arrivals that a late order can take back."""


def part_of(count: int, rank: int, among: int) -> int:
    """What the rank-th of so many senders gets of a number of places: 10 among 4 are 3, 3, 2, 2."""
    return (count - rank + among - 1) // among


class Partition:
    """One sender's share of a run's requests: which arrivals are its own, and the numbers of its requests.

    Numbers ascend, and no two senders use the same one: from each change of the team on, all count from a number
    that none of them has reached. Where conversations are dealt out, what is so numbered are the conversations; their
    turns, whose count no other sender knows, have ids in steps of the number of senders.
    """

    def __init__(self, setup: SenderSetup) -> None:
        self._worker = setup.worker
        self._many = setup.workers > 1
        self._talking = self._many and setup.workload.conversational
        self._turn_ids = itertools.count(setup.first_id + setup.worker, setup.workers)
        self._opened: deque[int] = deque()
        """Numbers of the conversations that were taken or claimed, and whose first turns were not sent yet."""
        self._first = self._index = self._next = setup.first_id
        self._active = setup.active or tuple(range(setup.workers))
        self._teams = [(setup.first_id, self._active)]
        self._limit: int | None = None
        self._places: int | None = None if setup.worker in self._active else 0
        self._claimed: deque[int] = deque()
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._begun: list[BegunRequest] = []
        self._prompts: DealtPrompts | None = None

    def dealt(self, source: PromptSource) -> PromptSource:
        """The prompts of this sender's own requests: number i has the same prompt whoever sends it."""
        if not self._many:
            return source
        self._prompts = DealtPrompts(source, self, first=self._first)
        return self._prompts

    def own_seed(self, seed: int) -> int:
        """A seed for what is random at each sender's own places; the run's own for the first sender."""
        return seed + _PRIME * self._worker

    # --- whose is it ---

    def owns(self, number: int) -> bool:
        """Whether the request of that number is this sender's."""
        for start, team in reversed(self._teams):
            if number >= start:
                return bool(team) and team[number % len(team)] == self._worker
        return False

    @property
    def working(self) -> bool:
        """It has a share at all: it does not stand by, and the concurrency limit has a place for it."""
        return self._worker in self._teams[-1][1]

    def takes(self, due: Due) -> bool:
        """Count an arrival of the schedule; True when it is this sender's to send."""
        index, self._index = self._index, self._index + 1
        self._recent.append(due.at)
        if self._many and not self.owns(index):
            return False
        self._claim(due, index)
        return True

    def claim(self, due: Due) -> None:
        """A request of a closed loop, for one of this sender's own places."""
        self._claim(due, 0)

    def _claim(self, due: Due, at_least: int) -> None:
        number = next(self._turn_ids) if self._talking else self._own_number(at_least)
        if self._talking and due.prompt is None:
            self._opened.append(self._own_number(at_least))
        self._claimed.append(number)
        if self._many:
            self._begun.append(self._begin(number, due))

    def _own_number(self, at_least: int) -> int:
        number = max(at_least, self._next)
        while self._many and not self.owns(number):
            number += 1
        self._next = number + 1
        return number

    def _begin(self, number: int, due: Due) -> BegunRequest:
        begun = BegunRequest(number=number, stage=due.stage, due=due.at)
        if not self._talking:
            return begun
        turn = due.prompt if isinstance(due.prompt, TurnPrompt) else None
        first = number if turn is None or turn.conversation is None else turn.conversation
        return dataclasses.replace(begun, conversation=first, turn=1 if turn is None else turn.turn)

    def number(self) -> int:
        """Of the request that is sent next: they are sent in the order in which they were taken or claimed."""
        return self._claimed.popleft()

    def request(self, number: int, due: Due, outbox: PrerenderQueue) -> PreparedRequest:
        """The prepared request of that number; those of numbers that were left out are dropped."""
        request = outbox.take(due)
        if due.prompt is not None:  # a later turn, which is in no stream of prompts
            return request
        wanted = self._opened.popleft() if self._talking else number
        while self._prompts is not None and self._prompts.drawn.popleft() < wanted:
            request = outbox.take(due)
        return request

    def connections(self, wanted: int) -> int:
        """This sender's part of the connections to open ahead; at least one where any are wanted of it."""
        if not self._many or not wanted:
            return wanted
        team = self._teams[-1][1]
        return max(1, part_of(wanted, team.index(self._worker), len(team))) if self._worker in team else 0

    # --- what changes it ---

    def starting(self, now: float) -> float:
        """The instant before which no plan can begin: now, or, among several senders, whenever the plan says."""
        return float("-inf") if self._many else now

    def count_from(self, number: int | None) -> None:
        """All senders count from there on, because a plan says so."""
        if number is not None:
            self._index, self._next = max(self._index, number), max(self._next, number)

    def places(self, limit: int | None, *, number_from: int | None = None) -> int | None:
        """This sender's part of a concurrency limit; below the number of senders, the first ones get one place each.

        A limit that changes who is at work changes whose the requests are, from `number_from` on.
        """
        if limit != self._limit:
            self._limit = limit
            self._form_team(number_from)
        return self._places if self._many else limit

    def _form_team(self, number_from: int | None) -> None:
        team = self._active if self._limit is None else self._active[: self._limit]
        if team != self._teams[-1][1]:
            left_out = self._next
            self.count_from(number_from)
            self._teams += [(left_out, ()), (self._index, team)]
        if self._worker not in team:
            self._places = 0
        else:
            rank = team.index(self._worker)
            self._places = None if self._limit is None else part_of(self._limit, rank, len(team))

    def reform(self, order: TimedCommand) -> None:
        """Obey the part of an order that is about who is at work; the schedule has been played up to its time.

        What has been due since, where the order came late, is not counted: who was in time did not count it yet.
        """
        while self._recent and self._recent[-1] > order.at:
            self._recent.pop()
            self._index -= 1
        if order.active is not None:
            self._active = order.active
            self._form_team(order.number_from)

    # --- what it tells ---

    @property
    def reached(self) -> int:
        """The number that this sender's count of arrivals, or of its own, has come to."""
        return max(self._index, self._next)

    def signed(self, report: SenderReport) -> SenderReport:
        """A report with the requests that began since the last one; a lone sender's, whom nobody outlives, as it is."""
        if not self._many:
            return report
        begun, self._begun = tuple(self._begun), []
        return dataclasses.replace(report, begun=begun, next_number=self.reached)

    def follow(self, steps: int = 200) -> None:
        """While standing by: walk on through the prompts, so that work can begin at once."""
        if self._prompts is not None and not self.working:
            self._prompts.skip(min(steps, self._index - self._prompts.position))


class DealtPrompts:
    """The prompts of one sender's requests, out of the stream of all."""

    def __init__(self, source: PromptSource, share: Partition, *, first: int) -> None:
        self._stream = source.prompts()
        self._share = share
        self.position = first
        """Number of the request whose prompt comes next in the stream of all."""
        self.drawn: deque[int] = deque()
        """Numbers of the prompts that were handed out, oldest first; whoever uses a prompt takes its number away."""

    def prompts(self) -> Iterator[Prompt]:
        """See PromptSource; there is one stream, so all iterators go on where the last one stopped."""
        while True:
            number, prompt = self.position, next(self._stream)
            self.position += 1
            if self._share.owns(number):
                self.drawn.append(number)
                yield prompt

    def skip(self, count: int) -> None:
        """Pass over prompts."""
        for _ in range(count):
            next(self._stream)
            self.position += 1
