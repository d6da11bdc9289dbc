"""Recognises an event stream by the first bytes of a body, whatever its content type is.

Proxies label event streams as JSON or HTML, and some servers respond with JSON although a stream was requested.
"""

from __future__ import annotations

import math
import re

import orjson

_MAX_ERROR_BODY = 64 << 10
_MAX_BODY = 64 << 20
_BEFORE_TEXT = b"\xef\xbb\xbf \t\r\n"
"""Byte order mark and white space, which may precede any text."""
_NO_EVENTS = (b"{", b"[", b"<", b'"', b"\x00")
"""First bytes of bodies that are not event streams: JSON, HTML, and the binary frames of gRPC and of Amazon Bedrock."""
QUOTED_BYTES = 120
"""How much of a stream without a token is quoted."""
_LAST_WORD = re.compile(r"[^\s\"',;{}\[\]]+\Z")

Piece = tuple[bytes, float]
"""Part of an event stream, and when it arrived."""


class BodyStart:
    """The beginning of a body until it is known to be an event stream; the whole body of any other response."""

    __slots__ = ("_first_line_at", "_may_stream", "data")

    def __init__(self, *, is_error: bool, may_stream: bool) -> None:
        """Collect a body, of an HTTP error or not, that may be an event stream or may not."""
        self.data: bytearray = bytearray()
        """What has arrived, up to a limit; empty while nothing but white space has."""
        self._may_stream = may_stream and not is_error
        self._first_line_at: float | None = math.nan if is_error else None
        """When the first line ended; NaN if the lines are not events."""

    @property
    def is_open(self) -> bool:
        """Whether an event stream may still begin: no text has arrived yet."""
        return self._may_stream and not self.data

    def add(self, piece: bytes, at: float) -> list[Piece]:
        """Add a piece of the body; return all pieces so far once they are an event stream, else none.

        JSON objects on a line each are events, too: the second line tells.
        """
        known = len(self.data)
        limit = _MAX_BODY if self._may_stream or self._first_line_at is None else _MAX_ERROR_BODY
        self.data += piece[: max(0, limit - known)]
        if not self._may_stream:
            return []
        if not known:
            start = bytes(self.data.lstrip(_BEFORE_TEXT))
            if start and not start.startswith(_NO_EVENTS):
                return [(start, at)]
            self.data[:] = start
        return self._lines(known, at)

    def _lines(self, known: int, at: float) -> list[Piece]:
        """Return the lines, if there is a second one and the first, which `known` bytes do not end, is an object."""
        if self._first_line_at is None and (end := self.data.find(b"\n", known)) >= 0:
            self._first_line_at = at if _is_object(self.data[:end]) else math.nan
        if self._first_line_at is None or math.isnan(self._first_line_at):
            return []
        line, newline, rest = self.data.partition(b"\n")
        return [(bytes(line + newline), self._first_line_at), (bytes(rest), at)] if rest.strip() else []


def _is_object(line: bytearray) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def has_completion(http_status: int) -> bool:
    """Whether a response with this status has a body that may be a completion: some frameworks answer 201."""
    return 200 <= http_status < 300 and http_status != 204


def missing_choices(requested: int, unended: int) -> str:
    """Return how many completions of several a stream has ended, for an error text; empty if none or all."""
    return f", after {requested - unended} of {requested} completions" if 0 < unended < requested else ""


def beginning(data: bytes) -> str:
    """Return how a body starts, for an error text; empty if it has no text.

    A word that may be longer is left out, because half a secret would not be recognised as one.
    """
    text = " ".join(data[:QUOTED_BYTES].decode("utf-8", "replace").split())
    if len(data) >= QUOTED_BYTES:
        text = _LAST_WORD.sub("", text) + "…"
    return f"; it starts with {text!r}" if text else ""
