"""Loads the corpus, and reads its bodies as a sender does: from the bytes of a response to a request's record."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.events import RequestRecord
from servetop.core.interfaces.dialect import Chunk, Dialect, Prompt, StreamParser
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.workload.stages.stage_run import Due

RESPONSES = Path(__file__).parent / "responses"
_LINE_END = rb"(?>\r\n|\n|\r)"
_BLOCK = re.compile(rb"%b*.+?(?:%b{2,}|\Z)" % (_LINE_END, _LINE_END), re.DOTALL)
_LINE = re.compile(rb".+?(?:%b|\Z)" % _LINE_END, re.DOTALL)
FIRST_AT, STEP, END = 1.0, 0.02, 1000.0
"""When the first piece arrives, the time between two pieces, and when the body ends; seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One response and its right reading (README.md)."""

    name: str
    body: bytes
    endpoint: str
    stream: bool
    content_type: str
    outcome: str
    reason: str
    first_token: int | str | None
    output_tokens: int
    content: str
    reasoning: str
    itl: str | None

    @property
    def is_event_stream(self) -> bool:
        """Whether the body is a stream of server-sent events, also if it is a broken one."""
        return self.stream and not self.body.lstrip(b"\xef\xbb\xbf \r\n").startswith((b"{", b"<"))

    @property
    def blocks(self) -> list[bytes]:
        """The body in pieces: events, each with the blank lines after it, or lines of JSON."""
        return (_BLOCK if self.is_event_stream else _LINE).findall(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What servetop reads from a response."""

    record: RequestRecord
    chunks: tuple[Chunk, ...]

    @property
    def content(self) -> str:
        """The text without the reasoning."""
        return "".join(chunk.answer for chunk in self.chunks)

    @property
    def reasoning(self) -> str:
        """The text of the reasoning."""
        return "".join(chunk.text.removeprefix(chunk.answer) for chunk in self.chunks)

    @property
    def result(self) -> tuple[object, ...]:
        """All that does not depend on when the bytes arrived: not how much of the stream an error can quote."""
        record = self.record
        error = record.error and re.split(r"(?:; it| that) starts with", record.error)[0]
        return record.status, error, record.output_tokens, *record.chunk_tokens, self.content, self.reasoning


class _Recorded:
    """A dialect that keeps the chunks of its parser, which are what a sender sees of a response."""

    def __init__(self, inner: Dialect) -> None:
        self._inner = inner
        self.path = inner.path
        self.chunks: list[Chunk] = []

    def parser(self, *, keep_texts: bool) -> StreamParser:
        self._parser = self._inner.parser(keep_texts=keep_texts)
        return self  # type: ignore[return-value]  # it has the methods that are used

    def feed(self, data: bytes) -> Sequence[Chunk]:
        return self._keep(self._parser.feed(data))

    def finish(self) -> Sequence[Chunk]:
        return self._keep(self._parser.finish())

    def equal_text_sizes(self) -> tuple[int, int] | None:
        return self._parser.equal_text_sizes()

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        return self._inner.body(prompt, workload)

    def parse_response(self, body: bytes) -> Sequence[Chunk]:
        return self._keep(self._inner.parse_response(body))

    def error_text(self, body: bytes) -> str:
        return self._inner.error_text(body)

    def _keep(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        if not any(chunk.final or chunk.error is not None for chunk in self.chunks):
            for chunk in chunks:
                self.chunks.append(chunk)
                if chunk.final or chunk.error is not None:
                    break
        return chunks


def load_cases() -> list[Case]:
    """Return all cases, by name."""
    return [_load(path) for path in sorted(RESPONSES.glob("*.json"))]


def _load(path: Path) -> Case:
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Case(
        name=path.stem,
        body=path.with_suffix(".body").read_bytes(),
        endpoint=facts["endpoint"],
        stream=facts["stream"],
        content_type=facts["content_type"],
        outcome=facts["outcome"],
        reason=facts.get("reason", ""),
        first_token=facts["first_token"],
        output_tokens=facts["output_tokens"],
        content=facts["content"],
        reasoning=facts["reasoning"],
        itl=facts.get("itl"),
    )


def read(case: Case, pieces: Sequence[bytes], *, dialect: Dialect | None = None) -> Reading:
    """Read a body that arrives in these pieces, STEP seconds apart; `dialect` may have read other streams before."""
    dialect = dialect or dialect_for(case.endpoint, model="m", continuous_usage=False)
    recorded = _Recorded(dialect)
    prompt = Prompt(text="x", input_tokens=8, output_tokens=9)
    prepared = PreparedRequest(prompt, b"{}", streamed=case.stream, keep_texts=True, choices=_choices(case))
    request = RequestState(1, Due(0, 0.0), prepared=prepared, dialect=recorded, limited=False)
    request.mark_sent(0.0)
    request.headers_received(200, FIRST_AT / 2)
    for number, piece in enumerate(pieces):
        request.body_received(piece, FIRST_AT + number * STEP)
    request.body_complete(END)
    return Reading(record=build_record(request, worker=0), chunks=tuple(recorded.chunks))


def _choices(case: Case) -> int:
    return 2 if b'"index":1,"delta"' in case.body else 1
