"""Conversations under way: who thinks, who asks next and when. Pure: it is told what ended, every instant is given."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator

from servetop.core.events import RequestStatus
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.record import reasoning_of
from servetop.loadgen.request.request_state import RequestState
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.conversation_scripts import TurnPrompt, next_turn
from servetop.workload.schedule import Schedule
from servetop.workload.stage_run import Due
from servetop.workload.user_slots import parse_think_time


class Conversations:
    """Turn k + 1 is due when its user has thought after turn k's end; holds what was said in open ones only.

    A workload without conversations leaves it empty.
    """

    def __init__(
        self, tally: SkippedRows, pauses: Iterator[float] | None = None, *, max_model_len: int | None = None
    ) -> None:
        self._tally = tally
        self._pauses = pauses or itertools.repeat(0.0)
        self._max_model_len = max_model_len
        self._thinking: list[tuple[float, int, Due]] = []

    @classmethod
    def of(cls, setup: SenderSetup, tally: SkippedRows, *, seed: int) -> Conversations:
        """Those of one sender; the model's longest context ends them only where lengths are to be clipped."""
        pauses = parse_think_time(setup.workload.think_time, seed=seed)
        return cls(tally, pauses, max_model_len=setup.max_model_len if setup.workload.clip_lengths else None)

    @property
    def thinking(self) -> int:
        """Users between an answer and their next question."""
        return len(self._thinking)

    @property
    def wake_at(self) -> float:
        """Run time at which the next of them asks; inf when nobody thinks."""
        return self._thinking[0][0] if self._thinking else math.inf

    def ended(self, exchange: RequestState) -> bool:
        """A request has ended; True when it was a turn of a conversation that goes on."""
        prompt = exchange.prompt
        if not isinstance(prompt, TurnPrompt) or prompt.last:
            return False
        if exchange.status is not RequestStatus.OK or exchange.done_at is None:
            self._tally.broken += 1
            return False
        following = next_turn(
            prompt,
            "" if exchange.text is None else exchange.text.answer,
            said_tokens=exchange.prompt_tokens
            + exchange.answer_tokens
            - reasoning_of(exchange).get("reasoning_tokens", 0),
            conversation=exchange.conversation,
        )
        if self._max_model_len is not None and following.most_tokens > self._max_model_len:
            self._tally.too_long += 1
            return False
        at = exchange.done_at + next(self._pauses)
        heapq.heappush(self._thinking, (at, exchange.id, Due(exchange.stage, at, following)))
        return True

    def due(self, now: float, schedule: Schedule) -> Iterator[Due]:
        """Turns that have become due, in order, as those of the stage in force, or of the stage that drains.

        A stage that was cut off takes its conversations with it.
        """
        if not schedule.plays_out:
            self.cut_short()
        while self._thinking and self._thinking[0][0] <= now:
            at, _, due = heapq.heappop(self._thinking)
            schedule.turn_due(at)
            yield due if schedule.play is None else Due(schedule.play.index, at, due.prompt)
        if self._thinking:
            schedule.turn_due(self.wake_at)

    def cut_short(self) -> None:
        """Nobody who thinks now asks again."""
        self._tally.cut += len(self._thinking)
        self._thinking.clear()
