"""Requests rendered before they are due, so that at its due time a request only has to be written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servetop.core.clock import Clock
from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Dialect, Prompt
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.workload.build import EngineTraits, prompts_for
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.prompts.prompt_source import PromptSource
from servetop.workload.stage_run import Due

if TYPE_CHECKING:
    from servetop.workload.prompts.local_tokenizer import LocalTokenizer


@dataclass(frozen=True, slots=True)
class NumberedRequest:
    """A due request that this sender is to send, with its number."""

    number: int
    due: Due
    prompt_number: int = 0
    """Position of its prompt in the prompt stream; earlier prompts that no request used are skipped."""


_LENGTH_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "n", "best_of")
"""Keys of `extra_body` that change the length of the output."""
LOOK_AHEAD = 64
"""Requests kept ready."""
_FILL_SECONDS = 0.0005
"""Longest time spent on rendering at one heartbeat."""


NumberedPrompts = Iterator[tuple[int, Prompt]]
"""Prompts in order, each with its position in the run's prompt stream."""


def prompt_source(setup: SenderSetup, skipped: SkippedRows) -> PromptSource:
    """Return the prompts of the whole run, the same sequence in every sender."""
    return prompts_for(
        setup.workload,
        (setup.seed, 0),
        max_model_len=setup.max_model_len,
        corpus_ids=setup.corpus_ids,
        skipped=skipped,
        engine=engine_traits(setup),
    )


def engine_traits(setup: SenderSetup) -> EngineTraits:
    """Return what the prompts depend on in the engine."""
    return EngineTraits(as_text=setup.text_prompts, block_size=setup.block_size)


class PrerenderQueue:
    """Renders a sender's requests in order, ahead of their due times where possible."""

    def __init__(
        self, prompts: NumberedPrompts, dialect: Dialect, workload: WorkloadConfig, *, skipped: SkippedRows
    ) -> None:
        self._prompts = prompts
        self._skipped = skipped
        self._dialect = dialect
        self._workload = workload
        self._length_overridden = any(key in workload.extra_body for key in _LENGTH_KEYS)
        self._tokenizer = _load_tokenizer(workload.tokenizer)
        self._ready: deque[tuple[int, Prompt, PreparedRequest]] = deque()
        self._salt: int | None = None

    def use_salt(self, salt: int | None) -> None:
        """Alter the beginnings of all prompts from now on; None: send them as they are."""
        if salt == self._salt:
            return
        self._salt = salt
        self._ready = deque((position, prompt, self._render_salted(prompt)) for position, prompt, _ in self._ready)

    def take(self, numbered: NumberedRequest, *, limited: bool) -> RequestState:
        """Return the state of a request that is sent now; `limited`: it waited for the concurrency limit."""
        prepared = self._prepared(numbered)
        return RequestState(numbered.number, numbered.due, prepared=prepared, dialect=self._dialect, limited=limited)

    def _prepared(self, numbered: NumberedRequest) -> PreparedRequest:
        if numbered.due.prompt is not None:  # a later turn of a conversation, which is not in the prompt stream
            return self._render(numbered.due.prompt)
        while True:
            position, _, prepared = self._ready.popleft() if self._ready else self._render_next()
            self._skipped.clipped += prepared.prompt.clipped
            if position >= numbered.prompt_number:
                return prepared

    def fill(self, clock: Clock, *, between: Callable[[], None]) -> None:
        """Render up to LOOK_AHEAD requests for at most half a millisecond; `between` is called after each."""
        until = clock.now() + _FILL_SECONDS
        while len(self._ready) < LOOK_AHEAD:
            self._ready.append(self._render_next())
            between()
            if clock.now() >= until:
                return

    def _render_next(self) -> tuple[int, Prompt, PreparedRequest]:
        position, prompt = next(self._prompts)
        return position, prompt, self._render_salted(prompt)

    def _render_salted(self, prompt: Prompt) -> PreparedRequest:
        if self._salt is None:
            return self._render(prompt)
        from servetop.workload.prompts.prompt_salt import salted

        return self._render(salted(prompt, self._salt))

    def _render(self, prompt: Prompt) -> PreparedRequest:
        text_needed = self._tokenizer is not None or (isinstance(prompt, TurnPrompt) and not prompt.last)
        body = self._dialect.body(prompt, self._workload)
        return PreparedRequest(
            prompt,
            bytes(memoryview(body)),  # an exact-size copy: orjson's results keep their 4 KiB buffer
            streamed=self._workload.stream,
            keep_texts=self._workload.store_texts or text_needed,
            record_texts=self._workload.store_texts,
            tokenizer=self._tokenizer,
            choices=self._workload.n,
            max_tokens=0 if self._length_overridden else prompt.output_tokens * self._workload.n,
        )


def _load_tokenizer(path: str) -> LocalTokenizer | None:
    if not path:
        return None
    from servetop.workload.prompts.local_tokenizer import load_tokenizer

    return load_tokenizer(path)
