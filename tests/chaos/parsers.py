"""Feeds randomly damaged responses to the parsers: the fast paths read the same as the exact ones."""

from __future__ import annotations

import itertools
import json
import random
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.json_event import read_chat, read_completion
from servetop.engines.dialects.stream_parser import EventStream
from servetop.engines.metrics.prometheus_text import scan
from servetop.engines.metrics.vllm_metrics import VLLM_METRICS
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.transport.http1 import Http1Connection
from servetop.workload.stages.stage_run import Due
from tests.chaos.case import Case, Fault, Result
from tests.chaos.hostile_text import HOSTILE

BATCH = 10_000
"""Inputs in a case."""
DIALECT = dialect_for("completions", model="m", continuous_usage=False)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TEXTS = (" a", " word", "", "\n", '"', "\\", "é", "\U0001f600", "\ud83d", '", "x": "', "\\u12", "a" * 300, HOSTILE.text)
PIECES = (
    b"data: [DONE]\n\n", b": ping\n\n", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\x00", b"event: x\n", b"data:",
    b'{"error": 1}', b"data: {}\n\n", b"data: null\n\n", b'"usage": {"completion_tokens": 9999999999999999}', b"\xff",
    b"{" * 50,
)  # fmt: skip
NUMBERS = ("0", "1", "-1", "1e308", "-1e308", "NaN", "+Inf", "-Inf", "9" * 400, "1_000", "0x10", "", " ", "1.5.2", "é")


def inputs(case: Case, folder: Path) -> Result:
    """A batch; a finding gives the input that made it."""
    del folder
    result, chance = Result(tried=0), case.chance()
    shapes = {reader: TemplateCache(reader) for reader in (read_completion, read_chat)}
    tries: Sequence[Callable[[random.Random], object]] = (
        lambda drawn: _stream_both_ways(drawn, shapes[read_completion], chat=False),
        lambda drawn: _stream_both_ways(drawn, shapes[read_chat], chat=True),
        _answer,
        _page,
    )
    for number in range(BATCH):
        seed = chance.getrandbits(64)
        try:
            tries[number % len(tries)](random.Random(seed))
        except Exception:
            result.found(Fault.TRACEBACK, f"input {number}: {traceback.format_exc()[-1500:]}")
            if len(result.findings) > 5:
                break
        result.tried += 1
    return result


def _event(chance: random.Random, *, chat: bool) -> bytes:
    text = chance.choice(TEXTS)
    part = {"delta": {"content": text}} if chat else {"text": text}
    content: dict[str, object] = {"id": "cmpl-1", "choices": [{"index": 0, **part, "finish_reason": None}]}
    if chance.random() < 0.2:
        content["usage"] = {"prompt_tokens": 3, "completion_tokens": chance.randrange(20)}
    end = b"\r\n\r\n" if chance.random() < 0.05 else b"\n\n"
    return b"data: " + json.dumps(content, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass") + end


def _damaged(chance: random.Random, data: bytes) -> bytes:
    """Half of the inputs are sound."""
    if chance.random() < 0.5:
        return data
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(4):
            case 0 if changed:
                changed[at % len(changed)] = chance.randrange(256)
            case 1:
                del changed[at : at + chance.choice((1, 3, 40))]
            case 2:
                changed[at:at] = chance.choice(PIECES)
            case _:
                changed[at:at] = changed[: chance.randrange(200)]
    return bytes(changed)


def _cut(chance: random.Random, data: bytes) -> list[bytes]:
    if chance.random() < 0.3:
        return [data]
    marks = sorted({chance.randrange(len(data) + 1) for _ in range(chance.choice((1, 4, 12)))} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(marks)]


def _stream_both_ways(chance: random.Random, shapes: TemplateCache, *, chat: bool) -> None:
    stream = b"".join(_event(chance, chat=chat) for _ in range(chance.randrange(1, 9))) + b"data: [DONE]\n\n"
    pieces = _cut(chance, _damaged(chance, stream))
    continuous = chance.random() < 0.5
    reader = read_chat if chat else read_completion
    read = []
    for known in (shapes, None):
        parser = EventStream(reader, known, continuous=continuous)
        chunks = [chunk for piece in pieces for chunk in parser.feed(piece)]
        read.append(_meaning([*chunks, *parser.finish()]))
    if read[0] != read[1]:
        raise AssertionError(f"quick {read[0]}, exact {read[1]}: {pieces!r}, continuous {continuous}")


def _meaning(chunks: Sequence[Chunk]) -> tuple[object, ...]:
    usage = [(chunk.prompt_tokens, chunk.output_tokens) for chunk in chunks if chunk.output_tokens is not None]
    errors = [chunk.error is not None for chunk in chunks if chunk.error]
    return ("".join(chunk.text for chunk in chunks), sum(chunk.tokens for chunk in chunks), usage[-1:], errors)


class _Inbox:
    """Takes at once what a connection puts off."""

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        connection.parse(data, at)

    def flush(self, connection: Http1Connection) -> None:
        if connection.request is not None:
            connection.request.flush()

    def unstamped(self, connection: Http1Connection, data: bytes) -> None: ...


def _answer(chance: random.Random) -> None:
    """A whole HTTP answer: no exception, and never more tokens than events with text."""
    body = b"".join(_chunk(_event(chance, chat=False)) for _ in range(chance.randrange(1, 9)))
    data = _damaged(chance, HEAD + body + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    prompt = Prompt(text="x", input_tokens=1, output_tokens=9)
    made = RequestState(0, Due(0, 0.0), prepared=PreparedRequest(prompt, b"{}"), dialect=DIALECT, limited=False)
    connection = Http1Connection(_Inbox())
    connection.send(made, b"", at=0.0)
    for number, piece in enumerate(_cut(chance, data), 1):
        if connection.protocol_error is None:
            connection.data_arrived(piece, number / 100)
    made.connection_lost("over", 99.0)
    if made.chunks.tokens < 0:
        raise AssertionError(f"{made.chunks.tokens} tokens: {data!r}")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


_PAGE = Path(__file__).parents[1] / "engines" / "data" / "vllm" / "metrics_0.32.0.txt"
_LINES = [line for line in _PAGE.read_text().splitlines() if line.startswith("vllm:")][:400]
_NAMES = {line.partition("{")[0] for line in _LINES}


def _page(chance: random.Random) -> None:
    """A page of metrics: no exception, and complete lines keep their values, whatever is around them."""
    lines = [chance.choice(_LINES) for _ in range(chance.randrange(1, 8))]
    odd = [f"{chance.choice(lines).rpartition(' ')[0]} {chance.choice(NUMBERS)}" for _ in range(chance.randrange(3))]
    page = _damaged(chance, "\n".join([*lines, *odd]).encode()).decode("utf-8", "replace")
    scan(page, _NAMES)
    sound = "\n".join([*lines, "", page])
    found = scan(sound, _NAMES)
    for line in lines:
        name, value = line.partition("{")[0], float(line.rpartition(" ")[2])
        if not any(row.value == value for row in found.get(name, ())):
            raise AssertionError(f"{line!r} is not found in {sound!r}")
    VLLM_METRICS.sample({"/metrics": page.encode()}, start=0.0, end=0.1)
