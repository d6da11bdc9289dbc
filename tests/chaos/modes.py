"""The answer modes by name, and how an honest client must count each."""

from __future__ import annotations

import gzip
import random

from tests.chaos.answers import (
    CHUNKED,
    DONE,
    HEAD,
    MIB,
    bomb,
    byte_by_byte,
    bytes_and,
    chunk,
    crlf,
    endless,
    gzipped,
    honest,
    interim_and_trailers,
    many_lines,
    no_blank,
    only_cr,
    reshaped,
    several_tokens_an_event,
    slow_comments,
    slow_headers,
    status,
    tool_calls,
    with_ids,
    without_chunks,
    without_done,
    wrong_usage,
)
from tests.chaos.hostile_text import HOSTILE
from tests.chaos.ledger import What
from tests.chaos.request import Answer

HTML = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"
OOPS = b"HTTP/1.1 500 Oops\r\n"

FINE: dict[str, Answer] = {
    "honest": honest,
    "one-piece": reshaped(bytes),
    "byte-by-byte": byte_by_byte,
    "without-chunks": without_chunks,
    "crlf": reshaped(crlf),
    "bom": reshaped(lambda stream: b"\xef\xbb\xbf" + stream),
    "many-lines": reshaped(many_lines),
    "no-blank": reshaped(no_blank),
    "ids-and-comments": reshaped(with_ids),
    "interim-and-trailers": interim_and_trailers,
    "after-done": reshaped(lambda stream: stream + b": bye\n\n"),
}
"""What must be counted as it was meant."""

ODD: dict[str, Answer] = {
    "several-tokens-an-event": several_tokens_an_event,
    "only-cr": reshaped(only_cr, what=What.ODD),
    "without-done": without_done,
    "tool-calls": tool_calls,
    "usage-too-high": wrong_usage(lambda sent: sent + 7),
    "usage-zero": wrong_usage(lambda sent: 0),
    "usage-negative": wrong_usage(lambda sent: -sent),
    "usage-huge": wrong_usage(lambda sent: 10**40),
    "usage-text": wrong_usage(lambda sent: "many"),
    "usage-float": wrong_usage(lambda sent: 1e308),
    "gzip": gzipped(gzip.compress, what=What.ODD),
    "gzip-in-name-only": gzipped(bytes, what=What.ODD),
}
"""What may be read either way, but never with a traceback, and never as more requests than there were."""

BROKEN: dict[str, Answer] = {
    "done-without-token": bytes_and(CHUNKED + chunk(DONE) + b"0\r\n\r\n", "close"),
    "error-event": bytes_and(chunk(b'data: {"error": {"message": "' + HOSTILE.json() + b'"}}\n\n'), "close", tokens=2),
    "broken-json": bytes_and(chunk(b"data: {" + HOSTILE.raw() + b"\n\n" + DONE) + b"0\r\n\r\n", "close", tokens=2),
    "broken-utf8": bytes_and(chunk(b'data: {"choices":[{"text":"\xff\xfe"}]}\n\n'), "close", tokens=2),
    "http-500": status("500 " + HOSTILE.line(), HOSTILE.raw()),
    "http-503": status("503 Busy", b'{"error": {"message": "' + HOSTILE.json() + b'"}}', close=True),
    "http-429": status("429 Slow down", b'{"message": "' + HOSTILE.json() + b'"}', headers="retry-after: 999999\r\n"),
    "http-404": status("404 Not here", b""),
    "redirect": status("307 Away", b"", headers="location: http://127.0.0.1:9/v1/\x1b[2J\r\n"),
    "upgrade": status("101 Switching", b"", headers="upgrade: h2c\r\nconnection: upgrade\r\n", close=True),
    "http2": bytes_and(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "close"),
    "page-for-people": bytes_and(HTML + b"content-length: 5\r\n\r\n<a>hi", "close"),
    "no-answer": bytes_and(b"", "close", what=What.NO_ANSWER),
    "reset-at-once": bytes_and(b"", "reset", what=What.NO_ANSWER),
    "reset-in-head": bytes_and(HEAD, "reset", what=What.NO_ANSWER),
    "reset-in-stream": bytes_and(b"", "reset", tokens=3, what=What.NO_ANSWER),
    "half-answer": bytes_and(b"", "close", tokens=3),
    "half-event": bytes_and(chunk(b'data: {"choices":[{"te'), "close", tokens=3),
    "no-end-marker": bytes_and(b"0\r\n\r\n", "close", tokens=3),
    "garbage": bytes_and(b"zz\r\n\x00\xff", "close", tokens=3),
    "stall": bytes_and(b"", "silence", tokens=3),
    "stall-at-once": bytes_and(b"", "silence"),
    "slow-headers": slow_headers,
    "slow-comments": slow_comments,
    "long-line": endless(CHUNKED + b"%x\r\ndata: " % (100 * MIB), b"x" * 65536),
    "many-short-lines": endless(CHUNKED + b"%x\r\n" % (100 * MIB), b"data: y\n" * 8192),
    "endless-header": endless(b"HTTP/1.1 200 OK\r\nx-endless: ", b"a" * 65536),
    "endless-headers": endless(b"HTTP/1.1 200 OK\r\n", b"x-again: and again\r\n" * 4096),
    "endless-trailer": endless(CHUNKED + b"0\r\nx-trailer: ", b"z" * 65536),
    "endless-error-page": endless(OOPS + b"content-length: 48000000\r\n\r\n", b"sorry " * 10_000, total=48 * MIB),
    "gzip-bomb": gzipped(lambda _: bomb(), what=What.BROKEN),
}  # fmt: skip
"""What must be counted as a failure."""

ANSWERS: dict[str, Answer] = FINE | ODD | BROKEN
SILENT = ("stall", "stall-at-once", "slow-headers", "slow-comments")
"""Of those, what only the client's patience ends."""
QUICK_TO_BREAK = sorted(set(BROKEN) - {*SILENT, "gzip-bomb"})


def answer_for(mode: str, randomly: random.Random) -> Answer:
    """By its name; `mixed` is another one each time, `few` one failure in eight."""
    if mode == "mixed":
        return ANSWERS[randomly.choice(sorted(set(FINE) | set(ODD)) + QUICK_TO_BREAK)]
    if mode == "few":
        return ANSWERS["half-answer" if randomly.random() < 0.125 else "honest"]
    return ANSWERS[mode]
