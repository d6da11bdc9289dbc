"""Event templates: the bytes around the text of a regular event, learned from an event that was fully parsed.

A template is learned by trial: the event's text is replaced, then its counts, and each time the result of a full parse
must change in that place alone. Other differences between events may be numbers and identities, which no parser uses.
So whatever matches a template has the structure of the event that it was learned from, and parses to the same result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from servetop.engines.dialects.json_event import ParsedEvent, Reader

TEXT = re.compile(
    rb'[^"\\\x00-\x1f]*+'
    rb'(?:\\(?:["\\/bfnrt]|u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}))[^"\\\x00-\x1f]*+)*+'
)
"""The inside of a JSON string up to its closing quote, or to what only a full parse can judge; UTF-8 is not checked."""

_MOST_SHAPES = 8
_MOST_TRIALS = 64
_MOST_TAILS = 16
_TEXT_KEYS = re.compile(rb'"(?:text|text_output|content|reasoning_content|reasoning|delta)": ?\[?"')
_PLAIN = rb"[ !#-\[\]-~]*+"
_DIGITS = rb"(?:0|[1-9][0-9]{0,8})(?![0-9.eE])"
_NUMBER = rb"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?"
_COUNTS = {"prompt": b"(?:prompt_tokens|tokens_evaluated)", "output": b"(?:completion_tokens|tokens_predicted)"}
_DETAILS = {"cached": b"cached_tokens", "reasoning": b"reasoning_tokens"}
_VARYING = re.compile(
    rb'(?P<identity>"(?:id|item_id|request_id|obfuscation)": ?")' + _PLAIN + rb'(?=")|(?P<number>' + _NUMBER + rb")"
)
_TRIAL_TEXT, _TRIAL_COUNT = "#trial#", 987654
_BEFORE = re.compile(rb"(?:event: ?[^\r\n]*\r?\n)?data: ?")
_AFTER = (b"\n\n", b"\r\n\r\n")


@dataclass(frozen=True, slots=True)
class EventTemplate:
    """A regular event of a stream, from its first byte to the blank line, is `head`, TEXT, `tail`."""

    head: re.Pattern[bytes]
    tail: re.Pattern[bytes]
    """Its groups `prompt`, `output`, `cached` and `reasoning` are the server's counts, where it has them."""
    counted: bool
    """The server's counts are in the event."""
    reasoning: bool
    """The text is the model's reasoning."""

    tails: dict[bytes, bytes] = field(default_factory=dict, compare=False)

    def shared(self, tail: bytes) -> bytes:
        """Return a shared copy of bytes that all streams repeat."""
        if len(self.tails) > _MOST_TAILS:
            self.tails.clear()
        return self.tails.setdefault(tail, tail)

    def fits(self, data: bytes, position: int) -> bool:
        """Whether an event of this template is at `position`."""
        start = self.head.match(data, position)
        found = start and TEXT.match(data, start.end())
        return bool(found and self.tail.match(data, found.end()))


class TemplateCache:
    """The event templates of one server, shared by all its streams."""

    def __init__(self, reader: Reader, *, learns: bool = True) -> None:
        self.known: list[EventTemplate] = []
        """Templates in the order in which they were learned."""
        self._reader = reader
        self._trials = 0 if learns else _MOST_TRIALS

    def learn(self, framed: bytes, event: bytes, reading: ParsedEvent) -> EventTemplate | None:
        """Learn a template from an event with the stream bytes `framed`; None if it is not regular."""
        before, _, after = framed.partition(event)
        if reading.pieces != 1 or reading.error is not None or reading.timing is not None:
            return None
        if reading.final or reading.stops:
            return None
        if len(self.known) >= _MOST_SHAPES or self._trials >= _MOST_TRIALS:
            return None
        if after not in _AFTER or not _BEFORE.fullmatch(before):
            return None
        self._trials += 1
        edges = self._text_edges(event, reading)
        if edges is None or b"\\" in event[: edges[0]] + event[edges[1] :]:  # an escape is more than its characters
            return None
        tail = self._tail(event, edges[1], reading=reading)
        if tail is None:
            return None
        head = re.escape(before) + _loosened(event[: edges[0]])
        shape = EventTemplate(re.compile(head), re.compile(tail + after), reading.usage is not None, reading.reasoning)
        self.known.append(shape)
        return shape

    def _text_edges(self, event: bytes, reading: ParsedEvent) -> tuple[int, int] | None:
        """Where the text begins and ends: nothing but the reading's text changes with it."""
        wanted = reading._replace(text=_TRIAL_TEXT)
        without = reading._replace(text="", pieces=0, reasoning=False)
        for key in _TEXT_KEYS.finditer(event):
            text = TEXT.match(event, key.end())
            head, tail = event[: key.end()], event[text.end() if text else len(event) :]
            if not tail.startswith(b'"') or self._reader(head + _TRIAL_TEXT.encode() + tail) != wanted:
                continue
            if self._reader(head + tail) == without:
                return len(head), len(event) - len(tail)
        return None

    def _tail(self, event: bytes, end: int, *, reading: ParsedEvent) -> bytes | None:
        """The pattern after the text, with a group for each count."""
        usage, places = reading.usage, []
        names = {name: key for name, key in (_COUNTS | _DETAILS).items() if usage and getattr(usage, name) is not None}
        for name, key in names.items():
            place = re.compile(rb'"' + key + rb'": ?(' + _DIGITS + rb")").search(event, end)
            if usage is None or place is None:
                return None
            low, high = place.span(1)
            changed = self._reader(event[:low] + b"%d" % _TRIAL_COUNT + event[high:])
            if changed != reading._replace(usage=usage._replace(**{name: _TRIAL_COUNT})):
                return None
            places.append((low, high, name))
        pattern, at = b"", end
        for low, high, name in sorted(places):
            pattern += _loosened(event[at:low]) + b"(?P<%b>%b)" % (name.encode(), _DIGITS)
            at = high
        absent = [name.encode() for name in (_COUNTS | _DETAILS) if name not in names]
        return pattern + _loosened(event[at:]) + b"".join(b"(?P<%b>(?!))?" % name for name in absent)


def _loosened(part: bytes) -> bytes:
    """A pattern of the same bytes with any number in place of each number, and any name in place of an identity."""
    pattern, at = b"", 0
    for found in _VARYING.finditer(part):
        varying = _NUMBER if found["identity"] is None else re.escape(found["identity"]) + _PLAIN
        pattern += re.escape(part[at : found.start()]) + varying
        at = found.end()
    return pattern + re.escape(part[at:])
