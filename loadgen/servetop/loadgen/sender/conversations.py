"""The turns of conversations: what is asked next once a turn has been answered."""

from __future__ import annotations

from servetop.core.events import RequestStatus
from servetop.core.interfaces.dialect import Prompt
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.record import reasoning_tokens
from servetop.loadgen.request.request_state import RequestState
from servetop.workload.client.open_turns import OpenTurns
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.conversation_scripts import TurnPrompt, next_turn


class Conversations:
    """Renders turn k + 1 after turn k has succeeded, and adds it to `turns`."""

    def __init__(self, skipped: SkippedRows, turns: OpenTurns[Prompt], *, max_model_len: int | None = None) -> None:
        self._skipped = skipped
        self._turns = turns
        self._max_model_len = max_model_len

    @classmethod
    def of(cls, setup: SenderSetup, skipped: SkippedRows, *, turns: OpenTurns[Prompt]) -> Conversations:
        """Return the conversations of one sender; the model's context limit ends them only with `clip_lengths`."""
        return cls(skipped, turns, max_model_len=setup.max_model_len if setup.workload.clip_lengths else None)

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
        self._turns.add(following, after=request.done_at, stage=request.stage, number=request.id)
        return True
