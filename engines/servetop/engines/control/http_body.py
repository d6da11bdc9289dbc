"""The body of a control-plane answer: unpacked within limits, whoever the server is."""

from __future__ import annotations

import zlib

from servetop.engines.control.one_line import first_words

LARGEST_ANSWER = 8 << 20
"""Bytes, unpacked; a longer answer is not read to its end and not used: half a metrics page would be other sums."""
MOST_LINES = 200_000
"""Lines of one answer; more than that in 8 MiB is no metrics page."""
_UNPACKED = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""Window bits by content encoding: some servers and proxies pack although nobody asked for it."""


class AnswerError(Exception):
    """An answer that is not used: too long, or packed in a way that nobody asked for."""


class Body:
    """Takes in the pieces of one body; nothing is unpacked beyond the limits, however small it was sent.

    AnswerError for a content encoding that is not known, and for what breaks a limit.
    """

    def __init__(self, content_encoding: str) -> None:
        self._packed = content_encoding.strip().lower()
        if self._packed not in ("identity", "", *_UNPACKED):
            raise AnswerError(
                f"it answers with content encoding {first_words(self._packed.encode(), 20)}, which was not asked for"
            )
        plain = self._packed in ("identity", "")
        self._unpacker = None if plain else zlib.decompressobj(_UNPACKED[self._packed])
        self._bytes = bytearray()

    def take(self, piece: bytes) -> None:
        """The next bytes as they were sent."""
        room = LARGEST_ANSWER + 1 - len(self._bytes)
        try:
            self._bytes += piece if self._unpacker is None else self._unpacker.decompress(piece, room)
        except zlib.error as error:
            raise AnswerError(f"it answers with broken {self._packed}") from error
        if len(self._bytes) > LARGEST_ANSWER:
            raise AnswerError(f"its answer is longer than {LARGEST_ANSWER >> 20} MiB: not read")

    def whole(self) -> bytes:
        """All of it, once it has ended."""
        if self._bytes.count(b"\n") > MOST_LINES:
            raise AnswerError(f"its answer has more than {MOST_LINES:,} lines: not read")
        return bytes(self._bytes)
