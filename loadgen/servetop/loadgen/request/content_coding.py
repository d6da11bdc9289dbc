"""Bodies that a server compresses although it was not asked to: gzip and deflate, as they arrive."""

from __future__ import annotations

import zlib

MOST_AT_ONCE = 4 << 20
"""Bytes that one read may become: an event stream shrinks to a tenth or so, a compression bomb to a thousandth."""
_GZIP = 16 + zlib.MAX_WBITS
_CODINGS = ("gzip", "x-gzip", "deflate")


class CodingError(Exception):
    """The body cannot be decoded; one line says why."""


class Decoder:
    """Takes a body's bytes in pieces of any size, and gives what they stand for as soon as that is possible."""

    def __init__(self, coding: str) -> None:
        """Of a `content-encoding`; CodingError for one that is not known."""
        if coding not in _CODINGS:
            raise CodingError(f"the server compresses its answers with {coding[:40]!r}, which nobody asked for")
        self._coding = coding
        self._stream: zlib._Decompress | None = None

    def decode(self, data: bytes) -> bytes:
        """The next piece; CodingError when it is broken, or grows beyond all measure."""
        found: list[bytes] = []
        left = MOST_AT_ONCE
        while data:
            stream = self._stream or zlib.decompressobj(self._window(data[0]))
            try:
                found.append(stream.decompress(data, left))
            except zlib.error as broken:
                raise CodingError(f"the answer is not the {self._coding} that its header promises ({broken})") from None
            left -= len(found[-1])
            if stream.unconsumed_tail or left <= 0:
                raise CodingError(f"a piece of the answer decompresses to more than {MOST_AT_ONCE >> 20} MiB")
            data = stream.unused_data
            self._stream = None if stream.eof else stream
        return b"".join(found)

    def _window(self, first: int) -> int:
        """What zlib calls `wbits`: some servers send `deflate` without zlib's header, whose first byte ends in 8."""
        if self._coding != "deflate":
            return _GZIP
        return zlib.MAX_WBITS if first & 15 == 8 else -zlib.MAX_WBITS


def decoder_for(coding: str) -> Decoder | None:
    """None for a body that is as it is. CodingError for a coding that is not known."""
    coding = coding.strip().lower()
    return None if coding in ("", "identity") else Decoder(coding)
