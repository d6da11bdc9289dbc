"""Requests rendered before they are due, so that at its due time a request only has to be written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from servetop.core.clock import Clock
from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Dialect, Prompt
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.request.required_output import required_output
from servetop.workload.build import EngineTraits, prompts_for
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.datasets.shared_dataset import SharedDataset
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.prompts.prompt_source import PromptSource
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.stage_draws import StageDraws, Stream
from servetop.workload.stages.stage_run import Due

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
"""Prompts in order, each with its position in its stream."""
OpenPrompts = Callable[[StageDraws], NumberedPrompts]
"""Opens the prompt stream of a stage."""


def prompt_source(setup: SenderSetup, draws: StageDraws, *, dataset: SharedDataset | None = None) -> PromptSource:
    """Return the prompts of a stage, or of all stages that share its stream: the same sequence in every sender."""
    return prompts_for(
        setup.workload,
        draws.prompts,
        max_model_len=setup.max_model_len,
        corpus_ids=setup.corpus_ids,
        dataset=dataset,
        engine=engine_traits(setup),
    )


def engine_traits(setup: SenderSetup) -> EngineTraits:
    """Return what the prompts depend on in the engine."""
    return EngineTraits(as_text=setup.text_prompts, token_ids=setup.token_ids, block_size=setup.block_size)


@dataclass(slots=True)
class _Stream:
    """One prompt stream, and its requests that are ready."""

    prompts: NumberedPrompts
    salt: int | None
    ready: deque[tuple[int, Prompt, PreparedRequest]] = field(default_factory=deque)


class PrerenderQueue:
    """Renders a sender's requests in order, ahead of their due times where possible."""

    def __init__(
        self,
        open_prompts: OpenPrompts,
        dialect: Dialect,
        workload: WorkloadConfig,
        *,
        skipped: SkippedRows,
        first: StageDraws | None = None,
        token_ids: Sequence[int] = (),
    ) -> None:
        """`first` are the draws of the first stage, whose requests are rendered before a plan begins.

        `token_ids` are the model's ordinary tokens, from which salts take theirs.
        """
        self._token_ids = token_ids
        self._open = open_prompts
        self._skipped = skipped
        self._dialect = dialect
        self._workload = workload
        self._required = required_output(dialect, workload)
        self._length_overridden = any(key in workload.extra_body for key in _LENGTH_KEYS)
        self._tokenizer = _load_tokenizer(workload.tokenizer)
        self._draws: dict[int | None, StageDraws] = {} if first is None else {None: first}
        self._plan_salt: int | None = None
        self._streams: dict[Stream, _Stream] = {}
        """That of the stage whose requests are being sent, and perhaps that of the next one."""

    def begin(self, plan: LoadPlan) -> None:
        """Open the prompts of a plan's first stage; requests of earlier stages that still wait keep theirs."""
        self._draws.pop(None, None)
        self._draws |= {index: plan.draws_of(index) for index, _ in plan.segments}
        self._plan_salt = plan.prompt_salt
        self._stream_of(self._draws[plan.segments[0][0]])

    def _stream_of(self, draws: StageDraws) -> _Stream:
        """Return the stream of a stage, opened if necessary, with the salt of the plan or else of the stage."""
        stream = self._streams.get(draws.stream)
        salt = draws.salt if self._plan_salt is None else self._plan_salt
        if stream is None:
            stream = self._streams[draws.stream] = _Stream(self._open(draws), salt)
        elif stream.salt != salt:
            stream.salt = salt
            stream.ready = deque((at, prompt, self._render_salted(prompt, salt)) for at, prompt, _ in stream.ready)
        return stream

    def take(self, numbered: NumberedRequest, *, limited: bool) -> RequestState:
        """Return the state of a request that is sent now; `limited`: it waited for the concurrency limit."""
        prepared = self._prepared(numbered)
        return RequestState(numbered.number, numbered.due, prepared=prepared, dialect=self._dialect, limited=limited)

    def _prepared(self, numbered: NumberedRequest) -> PreparedRequest:
        if numbered.due.prompt is not None:  # a later turn of a conversation, which is not in the prompt stream
            return self._render(numbered.due.prompt)
        stream = self._stream_of(self._draws[numbered.due.stage])
        if len(self._streams) > 1:
            self._forget_before(stream)
        while True:
            position, _, prepared = stream.ready.popleft() if stream.ready else self._render_next(stream)
            self._skipped.clipped += prepared.prompt.clipped
            if position >= numbered.prompt_number:
                self._skipped.last_position = max(self._skipped.last_position, position)
                return prepared

    def _forget_before(self, stream: _Stream) -> None:
        """Drop the streams opened before one whose requests are being sent: requests are taken in order."""
        keys = list(self._streams)
        for key in keys[: next(place for place, key in enumerate(keys) if self._streams[key] is stream)]:
            del self._streams[key]

    def fill(
        self, clock: Clock, *, stage: int | None, wanted: Callable[[], bool], between: Callable[[], object]
    ) -> None:
        """Render up to LOOK_AHEAD requests of a stage for at most half a millisecond; `between` is called after each.

        Before the first plan `stage` is None, as after the last stage of a plan. `wanted`: whether this sender has
        requests at all, which `between` may change: a sender without any would search the stream for ever.
        """
        if (draws := self._draws.get(stage)) is None or not wanted():
            return
        stream = self._stream_of(draws)
        until = clock.now() + _FILL_SECONDS
        while len(stream.ready) < LOOK_AHEAD:
            stream.ready.append(self._render_next(stream))
            between()
            if clock.now() >= until or not wanted():
                return

    def _render_next(self, stream: _Stream) -> tuple[int, Prompt, PreparedRequest]:
        position, prompt = next(stream.prompts)
        return position, prompt, self._render_salted(prompt, stream.salt)

    def _render_salted(self, prompt: Prompt, salt: int | None) -> PreparedRequest:
        if salt is None:
            return self._render(prompt)
        from servetop.workload.prompts.prompt_salt import salted

        return self._render(salted(prompt, salt, self._token_ids))

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
            choices=self._required.choices,
            max_tokens=0 if self._length_overridden else prompt.output_tokens * self._required.choices,
            required_tokens=self._required.tokens(prompt.output_tokens),
        )


def prerender_queue(
    setup: SenderSetup, dialect: Dialect, *, own: Callable[[PromptSource], NumberedPrompts], dataset: SharedDataset
) -> PrerenderQueue:
    """Return the queue of a sender; `own` selects its prompts from those of all senders."""
    return PrerenderQueue(
        lambda draws: own(prompt_source(setup, draws, dataset=dataset)),
        dialect,
        setup.workload,
        skipped=dataset.skipped,
        first=setup.draws,
        token_ids=setup.token_ids,
    )


def _load_tokenizer(path: str) -> LocalTokenizer | None:
    if not path:
        return None
    from servetop.workload.prompts.local_tokenizer import load_tokenizer

    return load_tokenizer(path)
