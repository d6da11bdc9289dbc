"""One request from its submission to its outcome: times, tokens, usage and error."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servetop.core.events import RequestStatus
from servetop.core.interfaces.dialect import Chunk, Dialect, Prompt, ServerTiming
from servetop.core.text.counted import counted
from servetop.engines.control.control_client import redacted_url
from servetop.loadgen.request.body_start import QUOTED_BYTES, BodyStart, beginning, has_completion, missing_choices
from servetop.loadgen.request.chunk_log import ChunkLog, spread_times
from servetop.loadgen.request.completion_text import CompletionText
from servetop.loadgen.request.content_coding import CodingError, Decoder, decoder_for
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.stages.stage_run import Due

if TYPE_CHECKING:
    from servetop.workload.prompts.local_tokenizer import LocalTokenizer


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A prompt and its rendered body."""

    prompt: Prompt
    body: bytes
    streamed: bool = True
    """The response is requested as a stream, not in one piece."""
    keep_texts: bool = False
    """Keep the completion's text while the request is in flight."""
    record_texts: bool = False
    """Store the texts of prompt and completion in the record."""
    tokenizer: LocalTokenizer | None = None
    """Counts the completion's tokens if the server does not."""
    choices: int = 1
    """Completions requested for the prompt (`n`)."""
    max_tokens: int = 0
    """Token limit over all choices; 0: unknown."""
    required_tokens: int = 0
    """Tokens that the server has to generate over all choices; 0: the model may stop at any time."""


class RequestState:
    """Updated by a transport: `mark_sent`, `headers_received`, `body_received`, then one of the ends.

    The ends are `body_complete`, `connection_lost` and `abandon`; the first outcome counts. `limited`: the concurrency
    limit delayed the request.
    """

    __slots__ = (
        "_beginning", "_decoder", "_location", "_output_tokens", "body", "body_start", "cached_tokens", "choices",
        "chunks", "chunks_counted", "deferred", "dialect", "done_at", "due_at", "error", "first_output_at",
        "first_token_at", "headers_at", "http_status", "id", "limited", "max_tokens", "open_choices", "parser",
        "prompt", "prompt_tokens", "prompt_tokens_counted", "reasoning_tokens", "replica", "reported_reasoning_tokens",
        "required_tokens", "retried", "sent", "stage", "stamped", "status", "streamed", "text", "timing",
    )  # fmt: skip

    def __init__(self, number: int, due: Due, *, prepared: PreparedRequest, dialect: Dialect, limited: bool) -> None:
        self.id, self.stage, self.due_at, self.limited = number, due.stage, due.at, limited
        self.prompt, self.body = prepared.prompt, prepared.body
        self.max_tokens, self.required_tokens = prepared.max_tokens, prepared.required_tokens
        self.dialect, self.parser = dialect, dialect.parser(keep_texts=prepared.keep_texts)
        self.sent: float | None = None
        self.headers_at: float | None = None
        self.done_at: float | None = None
        self.first_token_at: float | None = None
        self.first_output_at: float | None = None
        """First token after the reasoning."""
        self.reasoning_tokens = 0
        """As counted from the chunks."""
        self.reported_reasoning_tokens: int | None = None
        """As counted by the server."""
        self.http_status: int | None = None
        self.status: RequestStatus | None = None  # until the outcome is known
        self.error: str | None = None
        self.body_start: BodyStart | None = None
        """The body of an error, or of a response that is not, or not yet known to be, an event stream."""
        self.timing: ServerTiming | None = None
        self._decoder: Decoder | None = None
        self._beginning = b""  # of the body, until the first token
        self.choices = self.open_choices = prepared.choices
        """Completions requested, and those of them for which the server has not sent a finish reason."""
        self.prompt_tokens = prepared.prompt.input_tokens
        self._output_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.prompt_tokens_counted = 0
        """The part of `prompt_tokens` that the tick builder has counted."""
        self.chunks = ChunkLog()
        self.deferred: list[tuple[bytes, float]] = []
        """Variable parts and times of events that a transport matched by `frame_literals`, not parsed yet."""
        self.chunks_counted, self.stamped = 0, False
        """Chunks that the tick builder has counted; whether the kernel timestamped them and none waited to be read."""
        kept, recorded = prepared.keep_texts or prepared.record_texts, prepared.record_texts
        self.text = CompletionText(tokenizer=prepared.tokenizer, recorded=recorded) if kept else None
        """None if the completion's text is not needed."""
        self.retried, self.streamed, self._location = False, prepared.streamed, ""
        self.replica: int | None = None  # index of the server it was sent to, if there are several

    def mark_sent(self, at: float) -> None:
        """Set the time at which the request is written to the socket; a second attempt does not change it."""
        if self.sent is None:
            self.sent = at

    def headers_received(
        self, http_status: int, at: float, *, coding: str = "", media_type: str = "", location: str = ""
    ) -> None:
        """Apply the response's headers: `coding` is its content-encoding, `location` where a redirect leads.

        `media_type` does not matter here: the bytes of a body say what it is, and proxies label it wrongly.
        """
        del media_type
        self.headers_at = at
        self.http_status = http_status
        self._location = location
        self._release_prompt()
        self.body_start = BodyStart(is_error=not has_completion(http_status), may_stream=self.streamed)
        try:
            self._decoder = decoder_for(coding)
        except CodingError as error:
            self._end(RequestStatus.ERROR, at, f"HTTP {http_status}: {error}")

    def _release_prompt(self) -> None:
        """Free body and prompt, which the server has received; they may be far larger than what is kept."""
        self.body = b""
        if (self.text is None or not self.text.recorded) and type(self.prompt) is Prompt:
            self.prompt = _prompt_stub(self.prompt.token_ids is not None or self.prompt.counted, self.prompt.model)

    def body_received(self, data: bytes, at: float, *, since: float | None = None) -> None:
        """Parse a piece of the response's body that arrived at `at`, and not before `since` if that is known."""
        self.flush()
        if self._decoder is not None and self.status is None:
            try:
                data = self._decoder.decode(data)
            except CodingError as error:
                self._end(RequestStatus.ERROR, at, str(error))
                return
        if self.body_start is not None:
            pieces = self.body_start.add(data, at)
            if pieces:
                self.body_start = None
            for piece, arrived_at in pieces:
                self._parse(piece, arrived_at)
        else:
            self._parse(data, at, since)

    def _parse(self, data: bytes, at: float, since: float | None = None) -> None:
        if self.status is not None:
            return
        if self.first_token_at is None and len(self._beginning) < QUOTED_BYTES:
            self._beginning += data[:QUOTED_BYTES]
        chunks = self.parser.feed(data)
        if len(chunks) > 1 and since is not None and len(self.chunks):
            has_tokens = [chunk.tokens > 0 for chunk in chunks]
            times = spread_times(has_tokens, at, since=since, log=self.chunks)
        else:
            times = [at] * len(chunks)
        for chunk, time in zip(chunks, times, strict=True):
            self._add(chunk, time)

    def frame_literals(self) -> tuple[bytes, bytes] | None:
        """Return the prefix and suffix of events that may be deferred until the next `flush`; None: parse all input."""
        plain = self.status is None and self.body_start is None and self._decoder is None
        return self.parser.frame_literals() if plain else None

    def flush(self) -> None:
        """Parse and log the deferred events."""
        if not self.deferred:
            return
        middles, times = zip(*self.deferred, strict=True)
        self.deferred.clear()
        literals = self.frame_literals()
        if literals is None:  # the outcome was known before they arrived
            return
        regular = next((n for n in (len(times), len(times) - 1) if self._add_regular(middles[:n], times[:n])), 0)
        for middle, at in zip(middles[regular:], times[regular:], strict=True):
            for chunk in self.parser.feed(literals[0] + middle + literals[1]):
                self._add(chunk, at)

    def _add_regular(self, middles: Sequence[bytes], times: Sequence[float]) -> bool:
        """Log events at once if all are regular, which the last of a response is not: it has a finish reason."""
        last = self.parser.match_frames(middles) if middles else None
        if last is None:
            return False
        self.chunks.extend(times)
        if self.reasoning_tokens and self.first_output_at is None:
            self.reasoning_tokens += len(middles)
        if last.output_tokens is not None:
            self._update_usage(last)
        return True

    def _add(self, chunk: Chunk, at: float) -> None:
        if self.status is not None:  # nothing counts after the end marker
            return
        if chunk.tokens:
            if self.first_token_at is None:
                self.first_token_at, self._beginning = at, b""
            self.chunks.add(at, chunk.tokens)
            if chunk.reasoning:
                self.reasoning_tokens += chunk.tokens
            elif self.reasoning_tokens and self.first_output_at is None:
                self.first_output_at = at
        if self.text is not None:
            self.text.add(chunk)
        if chunk.output_tokens is not None:
            self._update_usage(chunk)
        self.open_choices -= chunk.stops or (chunk.final and chunk.output_tokens is not None)
        if chunk.error is not None:
            self._end(RequestStatus.ERROR, at, chunk.error)
        elif chunk.final:
            self._succeed(at)

    def _update_usage(self, chunk: Chunk) -> None:
        """Take over the server's token counts so far."""
        self._output_tokens = chunk.output_tokens
        self.prompt_tokens = chunk.prompt_tokens or self.prompt_tokens  # some proxies fill in 0
        self.cached_tokens, self.reported_reasoning_tokens = chunk.cached_tokens, chunk.reasoning_tokens
        if chunk.timing is not None:
            self.timing = chunk.timing

    def _succeed(self, at: float) -> None:
        """End as ok; a response without a token needs a finish reason and a token count from the server."""
        if self.chunks or (self.open_choices <= 0 and self.output_tokens is not None):
            self._end(RequestStatus.OK, at)
        else:
            self._end(RequestStatus.ERROR, at, f"the response ended without a token{beginning(self._beginning)}")

    def body_complete(self, at: float) -> None:
        """End the request: the server has sent the whole response."""
        if self.body_start is not None and not self.body_start.is_open:
            self._end_whole(bytes(self.body_start.data), at)
        else:
            for chunk in self.parser.finish():
                self._add(chunk, at)
            if self.open_choices <= 0:  # some servers send no end marker, but all send a finish reason
                self._succeed(at)
            reason = f"the stream ended without its end marker{missing_choices(self.choices, self.open_choices)}"
            self._end(RequestStatus.TRUNCATED, at, reason + beginning(self._beginning))

    def _end_whole(self, body: bytes, at: float) -> None:
        """End with an error, or a whole response, also if an event stream was requested."""
        message = self.dialect.error_text(body) or "no explanation"
        if self._location and self.http_status is not None and 300 <= self.http_status < 400:
            message = f"the server redirects to {redacted_url(self._location)}: give that address"
        if self.http_status is None or not has_completion(self.http_status):
            self._end(RequestStatus.ERROR, at, f"HTTP {self.http_status}: {message}")
            return
        for chunk in self.dialect.parse_response(body):
            self.open_choices = self.open_choices if chunk.stops else 0
            if chunk.error is not None and self.streamed:
                text = message if message in chunk.error else chunk.error
                chunk = chunk._replace(error=f"HTTP {self.http_status}, but no event stream: {text}")
            self._add(chunk, at)

    def connection_lost(self, reason: str, at: float) -> None:
        """End the request: the connection failed or was never established."""
        self.flush()
        if self.headers_at is None or (self.body_start is not None and not self.body_start.is_open):
            self._end(RequestStatus.ERROR, at, reason)
        else:
            self._end(RequestStatus.TRUNCATED, at, f"{reason} after {counted(self.chunks.tokens, 'token')}")

    def abandon(self, status: RequestStatus, at: float, *, reason: str) -> None:
        """End the request from the client side: timeout or cancellation."""
        quoted = beginning(self._beginning) if status is RequestStatus.TIMEOUT else ""
        self._end(status, at, reason + quoted)

    def _end(self, status: RequestStatus, at: float, error: str | None = None) -> None:
        self.flush()
        if self.status is None:
            self.status, self.done_at, self.error = status, at, error

    @property
    def output_tokens(self) -> int | None:
        """The server's count, once it has sent one; a count of 0 is none if there is text."""
        return None if self._output_tokens == 0 and self.chunks else self._output_tokens

    @property
    def completion_tokens(self) -> int:
        """The server's count, else that of the tokenizer, else that of the chunks."""
        if self.output_tokens is not None:
            return self.output_tokens
        if self.text is None or self.text.tokenizer is None:
            return self.chunks.tokens
        return self.text.tokenizer.count(self.text.full)

    @property
    def conversation(self) -> int:
        """Id of the first request of the conversation, or of this request if it starts one or belongs to none."""
        first = self.prompt.conversation if isinstance(self.prompt, TurnPrompt) else None
        return self.id if first is None else first


@functools.lru_cache(maxsize=256)
def _prompt_stub(counted: bool, model: str | None) -> Prompt:
    """Return what remains of a prompt: whether its tokens were counted, and its model; equal stubs are shared."""
    return Prompt(text="", input_tokens=0, output_tokens=0, counted=counted, model=model)
