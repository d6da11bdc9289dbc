"""Decodes the body of a control-plane response within size limits."""

from __future__ import annotations

import zlib

MAX_BODY_BYTES = 8 << 20
"""Decoded bytes. A longer body is discarded, because half a metrics page would give wrong sums."""
MAX_BODY_LINES = 200_000
"""Lines of one body; a metrics page of 8 MiB has fewer."""
_UNPACKED = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""zlib window bits by content encoding; some servers and proxies compress unasked."""


class ResponseError(Exception):
    """A response that is discarded: too long, or in an unsupported content encoding."""


class Body:
    """Collects the pieces of one body and decodes no more than the limits allow.

    ResponseError for an unknown content encoding and for a body beyond the limits.
    """

    def __init__(self, content_encoding: str) -> None:
        self._packed = content_encoding.strip().lower()
        if self._packed not in ("identity", "", *_UNPACKED):
            raise ResponseError(
                f"it answers with content encoding {excerpt(self._packed.encode(), 20)}, which was not asked for"
            )
        plain = self._packed in ("identity", "")
        self._unpacker = None if plain else zlib.decompressobj(_UNPACKED[self._packed])
        self._bytes = bytearray()

    def take(self, piece: bytes) -> None:
        """Add the next bytes as received."""
        room = MAX_BODY_BYTES + 1 - len(self._bytes)
        try:
            self._bytes += piece if self._unpacker is None else self._unpacker.decompress(piece, room)
        except zlib.error as error:
            raise ResponseError(f"it answers with broken {self._packed}") from error
        if len(self._bytes) > MAX_BODY_BYTES:
            raise ResponseError(f"its answer is longer than {MAX_BODY_BYTES >> 20} MiB: not read")

    def whole(self) -> bytes:
        """Return the complete body."""
        if self._bytes.count(b"\n") > MAX_BODY_LINES:
            raise ResponseError(f"its answer has more than {MAX_BODY_LINES:,} lines: not read")
        return bytes(self._bytes)


def excerpt(body: bytes, length: int = 60) -> str:
    """Return the beginning of a body as one printable line, for an error message."""
    text = " ".join(body[: 4 * length].decode("utf-8", errors="replace").split())
    printable = "".join(letter for letter in text if letter.isprintable())
    return printable if len(printable) <= length else printable[:length] + "…"
