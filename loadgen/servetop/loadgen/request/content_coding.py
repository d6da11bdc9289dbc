"""Decompression of response bodies (`content-encoding` gzip and deflate) as they arrive.

Requests do not offer compression; some servers and proxies compress anyway.
"""

from __future__ import annotations

import re
import zlib

MAX_DECODED_BYTES = 4 << 20
"""Bytes that one read may expand to: an event stream expands about tenfold, a compression bomb a thousandfold."""
_GZIP = 16 + zlib.MAX_WBITS
_CODINGS = ("gzip", "x-gzip", "deflate")
_UNCODED = ("", "identity", "none", "utf-8", "utf8", "chunked", "null")
"""Values of a body that is not coded: `none` keeps proxies from compressing a stream, others name the charset."""


class CodingError(Exception):
    """The body cannot be decoded; the message is one line."""


class Decoder:
    """Decodes one body from pieces of any size, returning output as early as possible."""

    def __init__(self, coding: str) -> None:
        """Decode the `content-encoding` `coding`; CodingError if it is not supported."""
        if coding not in _CODINGS:
            raise CodingError(f"the server compresses its responses with {coding[:40]!r}, which was not requested")
        self._coding = coding
        self._stream: zlib._Decompress | None = None

    def decode(self, data: bytes) -> bytes:
        """Decode the next piece; CodingError if it is corrupt or expands beyond the limit."""
        found: list[bytes] = []
        left = MAX_DECODED_BYTES
        while data:
            stream = self._stream or zlib.decompressobj(self._window_bits(data[0]))
            try:
                found.append(stream.decompress(data, left))
            except zlib.error as error:
                raise CodingError(
                    f"the response is not the {self._coding} that its header declares ({error})"
                ) from None
            left -= len(found[-1])
            if stream.unconsumed_tail or left <= 0:
                raise CodingError(f"a piece of the response decompresses to more than {MAX_DECODED_BYTES >> 20} MiB")
            data = stream.unused_data
            self._stream = None if stream.eof else stream
        return b"".join(found)

    def _window_bits(self, first: int) -> int:
        """Return zlib's `wbits`; some servers send `deflate` without zlib's header, whose first byte ends in 8."""
        if self._coding != "deflate":
            return _GZIP
        return zlib.MAX_WBITS if first & 15 == 8 else -zlib.MAX_WBITS


def decoder_for(coding: str) -> Decoder | None:
    """Return the decoder of a `content-encoding`, None for an uncoded body; CodingError if it is not supported."""
    codings = [name for name in re.split(r"[\s,]+", coding.lower()) if name not in _UNCODED]
    return Decoder(", ".join(codings)) if codings else None
