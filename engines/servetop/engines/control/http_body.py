"""Decodes the body of a control-plane response within size limits."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from servetop.core.text.shorten import cut_short

MAX_BODY_BYTES = 8 << 20
"""Maximum decoded bytes. A longer body is discarded, because half a metrics page would give wrong sums."""
MAX_BODY_LINES = 200_000
"""Maximum lines of a body; a metrics page of 8 MiB has fewer."""
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""zlib window bits by content encoding; some servers and proxies compress without a request to."""


@dataclass(frozen=True, slots=True)
class RawResponse:
    """One complete response."""

    status: int
    body: bytes
    location: str = ""
    """Where a redirect leads; empty if it leads nowhere."""


class ResponseError(Exception):
    """A response that is discarded: too long, or in an unsupported content encoding."""


class Body:
    """Collects the pieces of one body and decodes no more than the limits allow.

    ResponseError for an unknown content encoding and for a body beyond the limits.
    """

    def __init__(self, content_encoding: str) -> None:
        self._encoding = content_encoding.strip().lower()
        if self._encoding not in ("identity", "", *_WINDOW_BITS):
            raise ResponseError(
                f"it responds with content encoding {excerpt(self._encoding.encode(), 20)}, which was not requested"
            )
        plain = self._encoding in ("identity", "")
        self._decompressor = None if plain else zlib.decompressobj(_WINDOW_BITS[self._encoding])
        self._bytes = bytearray()

    def take(self, piece: bytes) -> None:
        """Add the next bytes as received."""
        room = MAX_BODY_BYTES + 1 - len(self._bytes)
        try:
            self._bytes += piece if self._decompressor is None else self._decompressor.decompress(piece, room)
        except zlib.error as error:
            raise ResponseError(f"it sends malformed {self._encoding}") from error
        if len(self._bytes) > MAX_BODY_BYTES:
            raise ResponseError(f"its response is longer than {MAX_BODY_BYTES >> 20} MiB: discarded")

    def whole(self) -> bytes:
        """Return the complete body."""
        if self._bytes.count(b"\n") > MAX_BODY_LINES:
            raise ResponseError(f"its response has more than {MAX_BODY_LINES:,} lines: discarded")
        return bytes(self._bytes)


def excerpt(body: bytes, length: int = 60) -> str:
    """Return the beginning of a body as one printable line, for an error message."""
    text = " ".join(body[: 4 * length].decode("utf-8", errors="replace").split())
    printable = "".join(letter for letter in text if letter.isprintable())
    return cut_short(printable, length)
