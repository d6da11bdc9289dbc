"""Open conversations: which turn is due next, and when. Pure: every time is an argument."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator

from servetop.core.events import RequestStatus
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.record import reasoning_tokens
from servetop.loadgen.request.request_state import RequestState
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.conversation_scripts import TurnPrompt, next_turn
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_run import Due


class Conversations:
    """Schedules turn k + 1 after turn k has ended and its user's think time has passed.

    Only open conversations are kept; a workload without conversations has none.
    """

    def __init__(
        self, skipped: SkippedRows, think_times: Iterator[float] | None = None, *, max_model_len: int | None = None
    ) -> None:
        self._skipped = skipped
        self._think_times = think_times or itertools.repeat(0.0)
        self._max_model_len = max_model_len
        self._thinking: list[tuple[float, int, Due]] = []

    @classmethod
    def of(cls, setup: SenderSetup, skipped: SkippedRows) -> Conversations:
        """Return the conversations of one sender; the model's context limit ends them only with `clip_lengths`."""
        return cls(skipped, max_model_len=setup.max_model_len if setup.workload.clip_lengths else None)

    def think(self, think_times: Iterator[float] | None) -> None:
        """Pause for these times from now on; None: not at all."""
        self._think_times = think_times or itertools.repeat(0.0)

    @property
    def thinking(self) -> int:
        """Users between a completion and their next turn."""
        return len(self._thinking)

    @property
    def wake_at(self) -> float:
        """Run time at which the next turn is due; inf if no user is thinking."""
        return self._thinking[0][0] if self._thinking else math.inf

    @staticmethod
    def may_continue(request: RequestState) -> bool:
        """Whether another turn follows the request if it succeeds."""
        return isinstance(request.prompt, TurnPrompt) and not request.prompt.last

    def request_ended(self, request: RequestState) -> bool:
        """Schedule the turn after a request that has ended; return whether its conversation continues."""
        prompt = request.prompt
        if not isinstance(prompt, TurnPrompt) or prompt.last:
            return False
        if request.status is not RequestStatus.OK or request.done_at is None:
            self._skipped.broken += 1
            return False
        following = next_turn(
            prompt,
            "" if request.text is None else request.text.answer,
            history_tokens=request.prompt_tokens + request.completion_tokens - reasoning_tokens(request),
            conversation=request.conversation,
        )
        if self._max_model_len is not None and following.most_tokens > self._max_model_len:
            self._skipped.too_long += 1
            return False
        at = request.done_at + next(self._think_times)
        heapq.heappush(self._thinking, (at, request.id, Due(request.stage, at, following)))
        return True

    def due(self, now: float, schedule: Schedule) -> Iterator[Due]:
        """Yield the turns that have become due, in order, as requests of the current or draining stage.

        If the stage was cut off, its conversations end.
        """
        if not schedule.continues_conversations:
            self.cancel()
        while self._thinking and self._thinking[0][0] <= now:
            at, _, due = heapq.heappop(self._thinking)
            schedule.turn_due(at)
            yield due if schedule.stage is None else Due(schedule.stage.index, at, due.prompt)
        if self._thinking:
            schedule.turn_due(self.wake_at)

    def cancel(self) -> None:
        """End the conversations whose users are thinking."""
        self._skipped.cut += len(self._thinking)
        self._thinking.clear()
