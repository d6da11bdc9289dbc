"""What a sender must know of an engine's wire, and no more: how to ask, and what an answer's bytes mean.

Implementations are the engines' business (`servetop.engines.dialects`); the sender gets one handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from servetop.core.config import WorkloadConfig

Message = tuple[str, str]
"""A role (`system`, `user`, `assistant`) and what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one request asks: text or token ids, and the lengths wanted."""

    text: str
    """The prompt; as long as `input_tokens` by estimate unless `token_ids` is given."""
    token_ids: tuple[int, ...] | None = None
    """Exactly these tokens, for wires that take ids."""
    input_tokens: int
    output_tokens: int
    messages: tuple[Message, ...] = ()
    """What was said before `text`, for wires that take messages; others find all of it in `text`."""
    counted: bool = False
    """`input_tokens` of the text were counted by a tokenizer, not estimated."""
    clipped: bool = False
    """It was longer before; the model does not take more."""
    model: str | None = None
    """The served model to ask; None: the one that all requests ask."""

    @property
    def recorded(self) -> str:
        """What is kept of it: the text, or, where token ids are all that there is, they as a JSON list."""
        return self.text or str(list(self.token_ids or ()) or "")


class ServerTiming(NamedTuple):
    """What a server says of one request's time there, in seconds; None is not told."""

    queue: float | None = None
    """Waiting to be scheduled."""
    prefill: float | None = None
    """From being scheduled to the first token."""
    decode: float | None = None
    """From the first token to the last."""


class Chunk(NamedTuple):
    """One event of an answer that carries tokens, or that ends or breaks it; a tuple, as one is made for each event."""

    text: str = ""
    """Empty where the parser was told that texts are not wanted."""
    tokens: int = 0
    """Tokens that this event brought; 0 for events that bring none (role, usage, end)."""
    final: bool = False
    """The answer's end marker: nothing follows."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    """The server's own counts so far, where the event carries them."""
    cached_tokens: int | None = None
    error: str | None = None
    """The server reports an error in the stream, or the event cannot be parsed; one line."""
    reasoning: bool = False
    """Its tokens are the model's reasoning, before (or between) those of the answer."""
    reasoning_tokens: int | None = None
    """The server's own count of those so far, where the event carries it."""
    thoughts: int = 0
    """Characters at the end of `text` that are reasoning, of a chunk that may have answer and reasoning."""
    timing: ServerTiming | None = None
    """Of the whole request, where the last event with counts carries it."""
    stops: int = 0
    """Answers to the prompt that it ends, as the server says by their `finish_reason`."""

    @property
    def answer(self) -> str:
        """The text without the model's reasoning."""
        return "" if self.reasoning else self.text[: len(self.text) - self.thoughts]


class StreamParser(Protocol):
    """Turns one answer's body into chunks, as it arrives in pieces of any size."""

    def feed(self, data: bytes) -> Sequence[Chunk]:
        """The chunks that these bytes complete; never raises, broken input gives a chunk with `error`."""
        ...

    def finish(self) -> Sequence[Chunk]:
        """All of the body is here, in order: a final chunk where that is the answer's end on this wire, else none."""
        ...

    def edges(self) -> tuple[bytes, bytes] | None:
        """What events like the last one begin and end with; None where none can be told by that.

        Whatever comes with these edges may be put aside for `alike`, as long as nothing else is fed meanwhile. The
        tuple stays the same object until its bytes change.
        """
        ...

    def alike(self, middles: Sequence[bytes]) -> Chunk | None:
        """The last chunk of events with such middles between the edges, none empty, that bring one token each.

        They are as fed then, and all their chunks alike but for the server's count, which goes up by one. None: it is
        not so, and nothing is taken: they are to be fed, one by one.
        """
        ...

    def even_texts(self) -> bool:
        """Whether the texts of all events so far, of which only the last may be another, have one length in bytes."""
        ...


class Dialect(Protocol):
    """One wire: the path and body of a request, and the parser of its answer."""

    path: str
    """Path of the request URL, such as `/v1/completions`."""

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """The JSON body of one request."""
        ...

    def answer(self, body: bytes) -> Sequence[Chunk]:
        """The chunks of an answer that was not streamed, the last one final or with an error; never raises."""
        ...

    def parser(self, *, keep_texts: bool) -> StreamParser:
        """A fresh parser for one answer; without `keep_texts` its chunks need not have any."""
        ...

    def error_text(self, body: bytes) -> str:
        """One line from the body of an HTTP error."""
        ...
