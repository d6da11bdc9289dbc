"""The body of a control-plane answer: unpacked within limits, whoever the server is."""

from __future__ import annotations

import zlib

MAX_BODY_BYTES = 8 << 20
"""Bytes, unpacked; a longer answer is not read to its end and not used: half a metrics page would be other sums."""
MAX_BODY_LINES = 200_000
"""Lines of one answer; more than that in 8 MiB is no metrics page."""
_UNPACKED = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""Window bits by content encoding: some servers and proxies pack although nobody asked for it."""


class ResponseError(Exception):
    """An answer that is not used: too long, or packed in a way that nobody asked for."""


class Body:
    """Takes in the pieces of one body; nothing is unpacked beyond the limits, however small it was sent.

    AnswerError for a content encoding that is not known, and for what breaks a limit.
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
        """The next bytes as they were sent."""
        room = MAX_BODY_BYTES + 1 - len(self._bytes)
        try:
            self._bytes += piece if self._unpacker is None else self._unpacker.decompress(piece, room)
        except zlib.error as error:
            raise ResponseError(f"it answers with broken {self._packed}") from error
        if len(self._bytes) > MAX_BODY_BYTES:
            raise ResponseError(f"its answer is longer than {MAX_BODY_BYTES >> 20} MiB: not read")

    def whole(self) -> bytes:
        """All of it, once it has ended."""
        if self._bytes.count(b"\n") > MAX_BODY_LINES:
            raise ResponseError(f"its answer has more than {MAX_BODY_LINES:,} lines: not read")
        return bytes(self._bytes)


def excerpt(body: bytes, length: int = 60) -> str:
    """Return the beginning of a body as one printable line, for an error message."""
    text = " ".join(body[: 4 * length].decode("utf-8", errors="replace").split())
    printable = "".join(letter for letter in text if letter.isprintable())
    return printable if len(printable) <= length else printable[:length] + "…"
