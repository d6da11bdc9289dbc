"""SSE parser: splits a byte stream into server-sent events, however the bytes are divided.

Implements the event stream format of the HTML standard (section 9.2.6) as far as serving engines use it: `data`
fields and comments; LF, CRLF and CR end a line. Other fields are skipped.
"""

from __future__ import annotations

MAX_EVENT_BYTES = 4 << 20
"""Maximum bytes of an event. No engine sends longer ones; the limit bounds memory."""
_SHORT = 4096


class SseSplitter:
    """Buffers bytes until an event is complete. An event above MAX_EVENT_BYTES sets `overflowed` permanently."""

    __slots__ = ("_after_cr", "_data", "_pieces", "held", "overflowed")

    def __init__(self) -> None:
        self.overflowed = False
        self._pieces: list[bytes] | None = None  # most streams never need a list
        self._data: list[bytes] | None = None
        self._after_cr = False
        """The last byte was a CR that ended its line; an LF that follows belongs to it."""
        self.held = 0
        """Bytes of the incomplete event."""

    def take_back(self) -> bytes:
        """Remove and return buffered bytes that are the short start of a line, to be fed again; else return none."""
        if self._data or self.held > _SHORT:
            return b""
        held = b"".join(self._pieces or ())
        self._pieces, self.held = None, 0
        return held

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of each event that these bytes complete; data lines are joined by a newline."""
        if self.overflowed:
            return []
        if not self.held:
            payloads = _whole_events(data)
            if payloads is not None:
                return payloads
        data = self._with_plain_line_ends(data)
        self._pieces = self._pieces or []
        self._pieces.append(data)
        self.held += len(data)
        events = self._lines(self._pieces) if b"\n" in data else []
        if self.held > MAX_EVENT_BYTES:
            self.overflowed = True
            self._pieces = self._data = None
        return events

    def _with_plain_line_ends(self, data: bytes) -> bytes:
        """Return the same lines, each ended by LF."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" not in data:
            return data
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _lines(self, pieces: list[bytes]) -> list[bytes]:
        joined = b"".join(pieces)
        *lines, rest = joined.split(b"\n")
        events: list[bytes] = []
        parts = self._data or []
        size = self.held - len(joined)  # of `parts` as received: many short lines count like a long one
        for line in lines:
            if line.startswith(b"data:"):
                parts.append(line[5:].removeprefix(b" "))
                size += len(line) + 1
            elif not line and parts:
                events.append(b"\n".join(parts))
                parts, size = [], 0
        self._pieces, self._data = [rest] if rest else None, parts or None
        self.held = len(rest) + size
        return events


def _whole_events(data: bytes) -> list[bytes] | None:
    """Fast path for complete events of one `data: ` line each; None if the data has any other form."""
    if not data.startswith(b"data: ") or not data.endswith(b"\n\n") or b"\r" in data or len(data) > MAX_EVENT_BYTES:
        return None
    newlines = data.count(b"\n")
    if newlines == 2:
        return [data[6:-2]]
    events = data[:-2].split(b"\n\n")
    if newlines != 2 * len(events):
        return None
    payloads = [event[6:] for event in events if event.startswith(b"data: ")]
    return payloads if len(payloads) == len(events) else None
