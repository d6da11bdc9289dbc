"""Requests rendered ahead of time, so that at its due time a request only has to be written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from servetop.core.clock import Clock
from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Dialect, Prompt
from servetop.loadgen.request.request_state import PreparedRequest
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.prompts.prompt_source import PromptSource
from servetop.workload.stage_run import Due

if TYPE_CHECKING:
    from servetop.workload.prompts.local_tokenizer import LocalTokenizer

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "n", "best_of")
"""Keys of `extra_body` that change how long an answer may be."""
LOOK_AHEAD = 64
"""Requests kept ready."""


class PrerenderQueue:
    """The sequence of a run's requests, in order, whoever asks."""

    def __init__(self, source: PromptSource, dialect: Dialect, workload: WorkloadConfig, *, tally: SkippedRows) -> None:
        self._prompts = source.prompts()
        self._tally = tally
        self._dialect = dialect
        self._workload = workload
        self._own_limits = any(key in workload.extra_body for key in _LIMITS)
        self._tokenizer = _tokenizer(workload.tokenizer)
        self._ready: deque[PreparedRequest] = deque()

    def take(self, due: Due) -> PreparedRequest:
        """The request that is due; rendered now when it is not ready."""
        if due.prompt is not None:
            return self._rendered(due.prompt)
        request = self._ready.popleft() if self._ready else self._render()
        self._tally.clipped += request.prompt.clipped
        return request

    def fill(self, clock: Clock, *, seconds: float, between: Callable[[], None]) -> None:
        """Render ahead, up to LOOK_AHEAD requests, for about so long at most; after each, `between` is called."""
        until = clock.now() + seconds
        while len(self._ready) < LOOK_AHEAD:
            self._ready.append(self._render())
            between()
            if clock.now() >= until:
                return

    def _render(self) -> PreparedRequest:
        return self._rendered(next(self._prompts))

    def _rendered(self, prompt: Prompt) -> PreparedRequest:
        answer_needed = self._tokenizer is not None or (isinstance(prompt, TurnPrompt) and not prompt.last)
        body = self._dialect.body(prompt, self._workload)
        return PreparedRequest(
            prompt,
            bytes(memoryview(body)),  # a copy of its own size: orjson's results keep the 4 KB they were written into
            streamed=self._workload.stream,
            keep_texts=self._workload.store_texts or answer_needed,
            record_texts=self._workload.store_texts,
            tokenizer=self._tokenizer,
            answers=self._workload.n,
            most_tokens=0 if self._own_limits else prompt.output_tokens * self._workload.n,
        )


def _tokenizer(path: str) -> LocalTokenizer | None:
    if not path:
        return None
    from servetop.workload.prompts.local_tokenizer import load_tokenizer

    return load_tokenizer(path)
