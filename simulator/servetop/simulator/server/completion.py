"""One completion of a request to the simulated server, independent of the dialect."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import orjson

from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.server.choices import Choices
from servetop.simulator.server.generation_request import GenerationRequest
from servetop.simulator.server.httpd import Connection
from servetop.simulator.server.tokens import WORDS

_ESCAPED_WORDS = tuple(orjson.dumps(f" {word}")[1:-1] for word in WORDS)


@dataclass(frozen=True, slots=True)
class ResponseHeader:
    """The fields that every event of a completion repeats. `created` is a Unix time in whole seconds."""

    response_id: str
    model: str
    created: int
    index: int = 0
    """Index of the choice."""
    prompt: int = 0
    """Number of the prompt within the request."""
    choices: Choices | None = None
    """All completions of the request; None for a single one."""


class Completion:
    """One completion in progress. `seq` is set once the engine has accepted the request."""

    def __init__(self, generation: GenerationRequest, connection: Connection, *, header: ResponseHeader) -> None:
        self.generation = generation
        self.connection = connection
        self.header = header
        self.seq: SimSequence | None = None
        self.sent = 0
        self._offset = zlib.crc32(header.response_id.encode()) + header.index
        if header.choices is not None:
            header.choices.members.append(self)
        connection.expect(self)

    @property
    def prompt(self) -> int:
        """The number of the completion's prompt within the request."""
        return self.header.prompt

    def all_usage(self) -> dict[str, object]:
        """Return the token counts of all completions of the request so far."""
        return self.usage() if self.header.choices is None else self.header.choices.usage()

    @property
    def finish_reason(self) -> str:
        """`length` if the token limit ended the completion, else `stop` (end of sequence)."""
        return "length" if self.sent >= self.generation.max_tokens else "stop"

    def usage(self) -> dict[str, object]:
        """Return the token counts so far, with a prefix cache including the cached prompt tokens."""
        prompt = self.generation.prompt_tokens
        usage: dict[str, object] = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + self.sent,
            "completion_tokens": self.sent,
        }
        if self.seq is not None and self.seq.request.prefix:
            usage["prompt_tokens_details"] = {"cached_tokens": self.seq.cached_tokens}
        return usage

    def token(self, *, last: bool) -> None:
        """Write one more token in the dialect's format; `last` marks the final one."""
        raise NotImplementedError

    def word(self) -> bytes:
        """Return the next token's text, JSON-escaped."""
        return _ESCAPED_WORDS[(self._offset + self.sent * 7) % len(_ESCAPED_WORDS)]
