"""One request and its answer: what came when, and how it ended."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.interfaces.dialect import Chunk, Dialect, Prompt, ServerTiming
from servetop.loadgen.request.chunk_log import ChunkLog
from servetop.loadgen.request.completion_text import CompletionText
from servetop.loadgen.request.content_coding import CodingError, Decoder, decoder_for
from servetop.loadgen.request.merged_reads import times_read_together
from servetop.loadgen.request.record import chunk_tokens, reasoning_of, timing_of, token_source
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.stage_run import Due

if TYPE_CHECKING:
    from servetop.workload.prompts.local_tokenizer import LocalTokenizer

_MAX_ERROR_BODY = 64 << 10
_MAX_ANSWER = 64 << 20


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A prompt and its body, rendered before it is due."""

    prompt: Prompt
    body: bytes
    streamed: bool = True
    """The answer is asked for as a stream; else in one piece."""
    keep_texts: bool = False
    """Collect the answer's text."""
    record_texts: bool = False
    """And record it, and the prompt's."""
    tokenizer: LocalTokenizer | None = None
    """Counts the answer where the server does not."""
    answers: int = 1
    """Asked for at once."""
    most_tokens: int = 0
    """Asked for, of all answers; 0: not known."""


class RequestState:
    """Filled in by a transport: `was_sent`, `answered`, `received`, then `complete` or `broke`, or `give_up`.

    The first outcome stays. `stamped`: the kernel tells when its chunks come, and none of them has waited for long.
    """

    __slots__ = (
        "_decoder", "_unstopped", "aside", "body", "cached_tokens", "chunks", "dialect", "done_at",
        "due_at", "error", "error_body", "first_output_at", "first_token_at", "headers_at", "held_back",
        "http_status", "id", "most_tokens", "output_tokens", "parser", "prompt", "prompt_tokens",
        "prompt_tokens_counted", "reasoning_tokens", "reasoning_told", "replica", "retried", "sent", "stage",
        "stamped", "status", "streamed", "taken_in", "text", "timing",
    )  # fmt: skip

    def __init__(self, number: int, due: Due, *, request: PreparedRequest, dialect: Dialect, held_back: bool) -> None:
        self.id, self.stage = number, due.stage
        self.due_at, self.held_back = due.at, held_back
        self.prompt, self.body, self.most_tokens = request.prompt, request.body, request.most_tokens
        self.dialect, self.parser = dialect, dialect.parser(keep_texts=request.keep_texts)
        self.sent: float | None = None
        self.headers_at: float | None = None
        self.first_token_at: float | None = None
        self.first_output_at: float | None = None
        """First token of the answer after reasoning."""
        self.reasoning_tokens = 0
        """As counted here."""
        self.reasoning_told: int | None = None
        """As counted by the server."""
        self.done_at: float | None = None
        self.http_status: int | None = None
        self.status: RequestStatus | None = None
        """None until the outcome is known."""
        self.error: str | None = None
        self.error_body: bytearray | None = None
        self.timing: ServerTiming | None = None
        self._decoder: Decoder | None = None
        self._unstopped = request.answers
        """Answers of which the server has not said how they ended."""
        self.prompt_tokens = request.prompt.input_tokens
        self.output_tokens: int | None = None
        """By the server's count, once it has told one."""
        self.prompt_tokens_counted = 0
        """Of `prompt_tokens`, what the accounts have counted."""
        self.cached_tokens: int | None = None
        self.chunks = ChunkLog()
        self.aside: list[tuple[bytes, float]] = []
        """Middles of events that came since, and when, put aside by a transport that told them by `edges`."""
        self.taken_in, self.stamped = 0, False
        """Chunks that the accounts have counted."""
        kept, recorded = request.keep_texts or request.record_texts, request.record_texts
        self.text = CompletionText(tokenizer=request.tokenizer, recorded=recorded) if kept else None
        """None where the answer's text is not to be kept."""
        self.retried, self.streamed = False, request.streamed
        self.replica: int | None = None
        """Which of several servers it went to."""

    def was_sent(self, at: float) -> None:
        """The request's bytes go to the socket now; a second try does not move the stamp."""
        if self.sent is None:
            self.sent = at

    def answered(self, http_status: int, at: float, *, is_stream: bool, coding: str = "") -> None:
        """The answer's headers are there; `coding` is its content-encoding."""
        self.headers_at = at
        self.http_status = http_status
        self._forget_question()
        if http_status != 200 or not is_stream:
            self.error_body = bytearray()
        try:
            self._decoder = decoder_for(coding)
        except CodingError as unknown:
            self._end(RequestStatus.ERROR, at, f"HTTP {http_status}: {unknown}")

    def _forget_question(self) -> None:
        """It has reached the server; it may be a thousand times as long as what is kept of the answer."""
        self.body = b""
        if (self.text is None or not self.text.recorded) and type(self.prompt) is Prompt:
            self.prompt = _forgotten(self.prompt.token_ids is not None or self.prompt.counted, self.prompt.model)

    def received(self, data: bytes, at: float, *, since: float | None = None) -> None:
        """A piece of the answer's body; `since` is when it cannot have begun to come earlier, where that is known."""
        self.settle()
        if self._decoder is not None and self.status is None:
            try:
                data = self._decoder.decode(data)
            except CodingError as broken:
                self._end(RequestStatus.ERROR, at, str(broken))
                return
        if self.error_body is not None:
            most = _MAX_ERROR_BODY if self.streamed or self.http_status != 200 else _MAX_ANSWER
            self.error_body += data[: most - len(self.error_body)]
        elif self.status is None:
            chunks = self.parser.feed(data)
            if len(chunks) > 1 and since is not None and len(self.chunks):
                bearing = [chunk.tokens > 0 for chunk in chunks]
                times = times_read_together(bearing, at, since=since, log=self.chunks)
            else:
                times = [at] * len(chunks)
            for chunk, time in zip(chunks, times, strict=True):
                self._take(chunk, time)

    def edges(self) -> tuple[bytes, bytes] | None:
        """See StreamParser: what comes with these edges may be put aside, until the next `settle`."""
        plain = self.status is None and self.error_body is None and self._decoder is None
        return self.parser.edges() if plain else None

    def settle(self) -> None:
        """Take in what was put aside."""
        if not self.aside:
            return
        middles, instants = zip(*self.aside, strict=True)
        self.aside.clear()
        edges = self.edges()
        if edges is None:  # the outcome was known before they came
            return
        if (last := self.parser.alike(middles)) is not None:
            self.chunks.extend(instants)
            if self.reasoning_tokens and self.first_output_at is None:
                self.reasoning_tokens += len(middles)
            if last.output_tokens is not None:
                self._counted(last)
            return
        for middle, at in zip(middles, instants, strict=True):
            for chunk in self.parser.feed(edges[0] + middle + edges[1]):
                self._take(chunk, at)

    def _take(self, chunk: Chunk, at: float) -> None:
        if chunk.tokens:
            if self.first_token_at is None:
                self.first_token_at = at
            self.chunks.add(at, chunk.tokens)
            if chunk.reasoning:
                self.reasoning_tokens += chunk.tokens
            elif self.reasoning_tokens and self.first_output_at is None:
                self.first_output_at = at
        if self.text is not None:
            self.text.add(chunk)
        if chunk.output_tokens is not None:
            self._counted(chunk)
        self._unstopped -= chunk.stops or (chunk.final and chunk.output_tokens is not None)
        if chunk.error is not None:
            self._end(RequestStatus.ERROR, at, chunk.error)
        elif chunk.final:
            self._succeed(at)

    def _counted(self, chunk: Chunk) -> None:
        """The server says how many tokens there are so far."""
        self.output_tokens = chunk.output_tokens
        self.prompt_tokens = self.prompt_tokens if chunk.prompt_tokens is None else chunk.prompt_tokens
        self.cached_tokens, self.reasoning_told = chunk.cached_tokens, chunk.reasoning_tokens
        if chunk.timing is not None:
            self.timing = chunk.timing

    def _succeed(self, at: float) -> None:
        """The answer is all here. Without a token it is one only if the server says that it ended, and its count."""
        if self.chunks or (self._unstopped <= 0 and self.output_tokens is not None):
            self._end(RequestStatus.OK, at)
        else:
            self._end(RequestStatus.ERROR, at, "the answer ended without a token")

    def complete(self, at: float) -> None:
        """The server has sent all of its answer."""
        if self.error_body is not None and self.http_status == 200 and not self.streamed:
            self._unstopped = 0
            for chunk in self.dialect.answer(bytes(self.error_body)):
                self._take(chunk, at)
        elif self.error_body is not None:
            words = self.dialect.error_text(bytes(self.error_body)) or "no explanation"
            what = f"HTTP {self.http_status}" if self.http_status != 200 else "HTTP 200, but no event stream"
            self._end(RequestStatus.ERROR, at, f"{what}: {words}")
        else:
            for chunk in self.parser.finish():
                self._take(chunk, at)
            if self._unstopped <= 0:  # some servers send no end marker, but all say why they stopped
                self._succeed(at)
            self._end(RequestStatus.TRUNCATED, at, "the stream ended without its end marker")

    def broke(self, reason: str, at: float) -> None:
        """The connection is gone, or never came about."""
        self.settle()
        if self.headers_at is None or self.error_body is not None:
            self._end(RequestStatus.ERROR, at, reason)
        else:
            self._end(RequestStatus.TRUNCATED, at, f"{reason} after {self.chunks.tokens} tokens")

    def give_up(self, status: RequestStatus, at: float, *, reason: str) -> None:
        """The sender itself ends it: a timeout, a cancellation."""
        self._end(status, at, reason)

    def _end(self, status: RequestStatus, at: float, error: str | None = None) -> None:
        self.settle()
        if self.status is None:
            self.status, self.done_at, self.error = status, at, error

    @property
    def answer_tokens(self) -> int:
        """The server's count, else the chunks'."""
        return self._tokens_counted() if self.output_tokens is None else self.output_tokens

    @property
    def conversation(self) -> int:
        """Id of the first request of its conversation; its own where it is the first, or of none."""
        first = self.prompt.conversation if isinstance(self.prompt, TurnPrompt) else None
        return self.id if first is None else first

    def _tokens_counted(self) -> int:
        """Of the answer so far: by the tokenizer where there is one, else those of the chunks."""
        if self.text is None or self.text.tokenizer is None:
            return self.chunks.tokens
        return self.text.tokenizer.count(self.text.whole)

    def record(self, *, worker: int) -> RequestRecord:
        """The finished request; the status must be known."""
        if self.status is None:
            raise ValueError(f"request {self.id} has not ended")
        recorded = self.text if self.text is not None and self.text.recorded else None
        turn = self.prompt if isinstance(self.prompt, TurnPrompt) else None
        return RequestRecord(
            id=self.id,
            stage=self.stage,
            due=self.due_at,
            sent=self.sent,
            headers_at=self.headers_at,
            first_token_at=self.first_token_at,
            done_at=self.done_at,
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.answer_tokens,
            cached_tokens=self.cached_tokens,
            status=self.status,
            error=self.error,
            http_status=self.http_status,
            worker=worker,
            token_source=token_source(self),
            chunk_times=self.chunks.times(),
            chunk_tokens=chunk_tokens(self),
            prompt_text=None if recorded is None else self.prompt.recorded,
            output_text=None if recorded is None else recorded.whole,
            conversation=None if turn is None else self.conversation,
            turn=None if turn is None else turn.turn,
            model=self.prompt.model,
            replica=self.replica,
            **reasoning_of(self),
            **timing_of(self.timing),
        )


@functools.lru_cache(maxsize=256)
def _forgotten(known: bool, model: str | None) -> Prompt:
    """What is left of a question: whether its tokens were counted, and whom it asked; one for all that are alike."""
    return Prompt(text="", input_tokens=0, output_tokens=0, counted=known, model=model)
