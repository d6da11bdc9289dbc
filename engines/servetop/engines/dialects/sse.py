"""SSE parser: splits a byte stream into server-sent events, however the bytes are divided.

Implements the event stream format of the HTML standard (section 9.2.6): `data` and `event` fields and comments; LF,
CRLF and CR end a line; an event without data is not dispatched, except an error. It also takes what servers send
between events although the standard ignores it: JSON without `data:`, HTML pages, `error:` fields, plain text.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from servetop.engines.dialects.server_errors import is_error_name

MAX_EVENT_BYTES = 4 << 20
"""Maximum bytes of an event. No engine sends longer ones; the limit bounds memory."""
_SHORT = 4096
_MAX_REMARK = 1024
"""Bytes of comments and unknown lines that are kept of an event."""
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry", b"error")


class SseEvent(NamedTuple):
    """One event: its data lines joined by newlines, and its name, empty for the default."""

    data: bytes
    name: bytes = b""
    remark: bytes = b""
    """The comments of an error event, or text that belongs to no field, which only matters if it is the last."""


class SseSplitter:
    """Buffers bytes until an event is complete. An event above MAX_EVENT_BYTES sets `overflowed` permanently."""

    __slots__ = (
        "_after_cr",
        "_bare",
        "_comment",
        "_data",
        "_name",
        "_pieces",
        "_size",
        "_unknown",
        "held",
        "overflowed",
    )

    def __init__(self) -> None:
        self.overflowed = False
        self._pieces: list[bytes] | None = None  # most streams never need a list
        self._data: list[bytes] | None = None
        self._size = 0
        """Bytes of the data lines of the incomplete event as received: many short lines count like a long one."""
        self._name = self._comment = self._unknown = b""
        self._bare = False
        """The data are lines without `data:`, the beginning of a JSON object or an HTML page."""
        self._after_cr = False
        """The last byte was a CR that ended its line; an LF that follows belongs to it."""
        self.held = 0
        """Bytes of the incomplete event."""

    def take_back(self) -> bytes:
        """Remove and return buffered bytes that are the short start of an event, to be fed again; else return none."""
        if self._begun or self.held > _SHORT:
            return b""
        held = b"".join(self._pieces or ())
        self._pieces, self.held = None, 0
        return held

    @property
    def _begun(self) -> bool:
        """Whether a line of the incomplete event has been read."""
        return bool(self._data or self._name or self._comment or self._unknown)

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that these bytes complete."""
        if self.overflowed:
            return []
        if not self.held:
            events = _whole_events(data)
            if events is not None:
                return events
        data = self._with_plain_line_ends(data)
        self._pieces = self._pieces or []
        self._pieces.append(data)
        self.held += len(data)
        events = self._lines(self._pieces) if b"\n" in data else []
        if self.held > MAX_EVENT_BYTES:
            self.overflowed = True
            self._pieces = self._data = None
        return events

    def close(self) -> list[SseEvent]:
        """Return the event that the end of the body ends without a blank line, if it has; part of a field is none."""
        rest = b"".join(self._pieces or ())
        if self.overflowed or (rest and any(field.startswith(rest) for field in _FIELDS)):
            return []
        return self.feed(b"\n\n")

    def _with_plain_line_ends(self, data: bytes) -> bytes:
        """Return the same lines, each ended by LF."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" not in data:
            return data
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _lines(self, pieces: list[bytes]) -> list[SseEvent]:
        joined = b"".join(pieces)
        *lines, rest = joined.split(b"\n")
        events: list[SseEvent] = []
        self._pieces = [rest] if rest else None
        for line in lines:
            if line.startswith(b"data:") and not self._bare:
                self._add_data(line[5:].removeprefix(b" "), len(line))
            elif not line or self._other_line(line, events):
                self._dispatch(events)
        self.held = len(rest) + self._size + self._begun
        return events

    def _add_data(self, value: bytes, size: int) -> None:
        """Append a data line that was received as `size` bytes."""
        self._data = self._data or []
        self._data.append(value)
        self._size += size + 1

    def _dispatch(self, events: list[SseEvent]) -> None:
        """End the event; without data it only counts if it is an error, or text of no field."""
        data, name = b"\n".join(self._data or ()), self._name
        if (data and not data.isspace()) or is_error_name(name):
            events.append(SseEvent(data, name, self._comment if is_error_name(name) else b""))
        elif self._unknown:
            events.append(SseEvent(b"", b"", self._unknown))
        self._data, self._bare, self._size = None, False, 0
        self._name = self._comment = self._unknown = b""

    def _other_line(self, line: bytes, events: list[SseEvent]) -> bool:
        """Take a line that is not a data field; return whether it ends the event."""
        line = line.removeprefix(_BOM)
        field, colon, value = line.partition(b":")
        if self._bare and field in _FIELDS:  # the block ended without a blank line
            self._dispatch(events)
        if self._bare or (line[:1] in (b"{", b"<") and not self._data):
            return self._bare_line(line)
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value.strip()
        elif field == b"data" or (field == b"error" and colon):  # llama.cpp: `error: {…}`
            self._name = self._name or field.removeprefix(b"data")
            self._add_data(value, len(line))
        elif not field:
            self._comment = b" ".join((self._comment, value)).strip()[:_MAX_REMARK]
        elif field not in _FIELDS and (not colon or b" " in field or is_error_name(field)):
            self._unknown = b" ".join((self._unknown, line)).strip()[:_MAX_REMARK]
        return False

    def _bare_line(self, line: bytes) -> bool:
        """Take a line of JSON or HTML without `data:`; return whether it completes a JSON object."""
        first = not self._data
        self._add_data(line, len(line))
        self._bare = True
        return line == b"}" or (first and line.rstrip().endswith(b"}") and _is_json(line))


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _whole_events(data: bytes) -> list[SseEvent] | None:
    """Fast path for complete events of one `data: ` line each; None if the data has any other form."""
    if not data.startswith(b"data: ") or not data.endswith(b"\n\n") or b"\r" in data or len(data) > MAX_EVENT_BYTES:
        return None
    newlines = data.count(b"\n")
    if newlines == 2:
        return None if data[6:-2].isspace() or len(data) == 8 else [SseEvent(data[6:-2])]
    events = data[:-2].split(b"\n\n")
    if newlines != 2 * len(events):
        return None
    payloads = [SseEvent(event[6:]) for event in events if event.startswith(b"data: ") and not event[5:].isspace()]
    return payloads if len(payloads) == len(events) else None
