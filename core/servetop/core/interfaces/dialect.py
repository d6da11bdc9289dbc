"""A dialect is one HTTP API of an engine: request body, stream parser, error text.

The implementations are in `servetop.engines.dialects`; senders load them by name and depend on this protocol only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from servetop.core.config import WorkloadConfig

Message = tuple[str, str]
"""Role (`system`, `user` or `assistant`) and text of one message of a conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt of one request, as text or token ids, with its input and output lengths in tokens."""

    text: str
    """The prompt; as long as `input_tokens` by estimate unless `token_ids` is given."""
    token_ids: tuple[int, ...] | None = None
    """The exact tokens, for dialects that accept ids."""
    input_tokens: int
    output_tokens: int
    messages: tuple[Message, ...] = ()
    """The messages before `text`, for dialects with messages; for the others `text` contains them too."""
    counted: bool = False
    """A tokenizer counted `input_tokens`; otherwise they are an estimate."""
    clipped: bool = False
    """The prompt was shortened to the model's context length."""
    model: str | None = None
    """The served model that this request names; None: the run's default model."""
    cancel_after: int | None = None
    """Output tokens after which the client cancels the request; None: it waits for the end."""

    @property
    def recorded_text(self) -> str:
        """The text to record; a prompt of token ids alone is recorded as a JSON list."""
        return self.text or str(list(self.token_ids or ()) or "")


class ServerTiming(NamedTuple):
    """The server's own times of one request, in seconds; None where the server does not report one."""

    queue: float | None = None
    """From arrival until the request is scheduled."""
    prefill: float | None = None
    """From being scheduled to the first token."""
    decode: float | None = None
    """From the first token to the last."""


class Chunk(NamedTuple):
    """One stream event that carries tokens or counts, ends the stream, or breaks it. A tuple for speed."""

    text: str = ""
    """Empty if the parser was created without `keep_texts`."""
    tokens: int = 0
    """Tokens in this event; 0 for events without any (role, usage, end)."""
    final: bool = False
    """The end marker of the stream: nothing follows."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    """The server's own counts so far, if the event has them."""
    cached_tokens: int | None = None
    error: str | None = None
    """An error that the server reports in the stream, or a parse error; one line."""
    reasoning: bool = False
    """The tokens are the model's reasoning, not its answer."""
    reasoning_tokens: int | None = None
    """The server's own count of reasoning tokens so far, if the event has it."""
    reasoning_chars: int = 0
    """Characters at the end of `text` that are reasoning, in a chunk with both answer and reasoning."""
    timing: ServerTiming | None = None
    """Times of the whole request, if the last event carries them."""
    stops: int = 0
    """Completions of the prompt that end with this event (those with a `finish_reason`)."""

    @property
    def answer(self) -> str:
        """The text without the model's reasoning."""
        return "" if self.reasoning else self.text[: len(self.text) - self.reasoning_chars]


class StreamParser(Protocol):
    """Parses the body of one streamed response into chunks; the body may arrive in pieces of any size."""

    def feed(self, data: bytes) -> Sequence[Chunk]:
        """Return the chunks that these bytes complete. Never raises: invalid input gives a chunk with `error`."""
        ...

    def finish(self) -> Sequence[Chunk]:
        """Handle the regular end of the body: a final chunk if that ends the stream in this dialect, else nothing."""
        ...

    def frame_literals(self) -> tuple[bytes, bytes] | None:
        """Prefix and suffix of events like the last one; None if such events cannot be recognised by them.

        Events between these literals may be collected for `match_frames` as long as nothing else is fed meanwhile. The
        same tuple object is returned until its bytes change.
        """
        ...

    def match_frames(self, middles: Sequence[bytes]) -> Chunk | None:
        """Consume events with these non-empty middles, of one token each, and return the last one's chunk.

        The effect is that of feeding them; their chunks differ only in the server's count, which rises by one.
        None: they are not such events, nothing was consumed, and each has to be fed.
        """
        ...

    def equal_text_sizes(self) -> tuple[int, int] | None:
        """Return the length in bytes of each event's text but the last, and of the last, which may be shorter.

        None if the texts of the events so far have other lengths.
        """
        ...


class Dialect(Protocol):
    """One HTTP API of an engine: path and body of a request, and the parser of its response."""

    path: str
    """Path of the request URL, such as `/v1/completions`."""

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request."""
        ...

    def parse_response(self, body: bytes) -> Sequence[Chunk]:
        """Parse a response that was not streamed; the last chunk is final or has an error. Never raises."""
        ...

    def parser(self, *, keep_texts: bool) -> StreamParser:
        """Return a new parser for one response; without `keep_texts` its chunks may have no text."""
        ...

    def error_text(self, body: bytes) -> str:
        """Return one line from the body of an HTTP error."""
        ...
