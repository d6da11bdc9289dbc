"""Event templates: the bytes around the text of a regular event, learned from an event that was fully parsed.

A template is learned by trial: the event's text is replaced, then its counts, and each time only that part of the full
parse's result may change. Events may also differ in numbers and ids, which no parser uses. So every event that matches
a template has the structure of the event that it was learned from, and parses to the same kind of result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from servetop.engines.dialects.json_event import ParsedEvent, Reader

TEXT = re.compile(
    rb'[^"\\\x00-\x1f]*+'
    rb'(?:\\(?:["\\/bfnrt]|u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}))[^"\\\x00-\x1f]*+)*+'
)
"""The inside of a JSON string, up to its closing quote or an escape that needs a full parse; UTF-8 is not checked."""

_MAX_TEMPLATES = 8
_MAX_TRIALS = 64
_MAX_TAILS = 16
_TEXT_KEYS = re.compile(rb'"(?:text|text_output|content|reasoning_content|reasoning|delta)": ?\[?"')
_PLAIN = rb"[ !#-\[\]-~]*+"
_DIGITS = rb"(?:0|[1-9][0-9]{0,8})(?![0-9.eE])"
_NUMBER = rb"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?"
_COUNTS = {"prompt": b"(?:prompt_tokens|tokens_evaluated)", "output": b"(?:completion_tokens|tokens_predicted)"}
_DETAILS = {"cached": b"cached_tokens", "reasoning": b"reasoning_tokens"}
_VARIABLE = re.compile(
    rb'(?P<identity>"(?:id|item_id|request_id|obfuscation)": ?")' + _PLAIN + rb'(?=")|(?P<number>' + _NUMBER + rb")"
)
_TRIAL_TEXT, _TRIAL_COUNT = "#trial#", 987654
_BEFORE = re.compile(rb"(?:event: ?[^\r\n]*\r?\n)?data: ?")
_AFTER = (b"\n\n", b"\r\n\r\n")


@dataclass(frozen=True, slots=True)
class EventTemplate:
    """Matches a regular event, from its first byte through the blank line: `head`, TEXT, `tail`."""

    head: re.Pattern[bytes]
    tail: re.Pattern[bytes]
    """The groups `prompt`, `output`, `cached` and `reasoning` are the server's counts, if present."""
    counted: bool
    """The event has the server's counts."""
    reasoning: bool
    """The text is the model's reasoning."""

    tails: dict[bytes, bytes] = field(default_factory=dict, compare=False)

    def shared(self, tail: bytes) -> bytes:
        """Return one shared copy of a tail that many streams repeat."""
        if len(self.tails) > _MAX_TAILS:
            self.tails.clear()
        return self.tails.setdefault(tail, tail)

    def matches(self, data: bytes, position: int) -> bool:
        """Whether an event at `position` matches."""
        start = self.head.match(data, position)
        found = start and TEXT.match(data, start.end())
        return bool(found and self.tail.match(data, found.end()))


class TemplateCache:
    """The event templates of one server, shared by all its streams."""

    def __init__(self, reader: Reader, *, learns: bool = True) -> None:
        self.known: list[EventTemplate] = []
        """Templates in the order in which they were learned."""
        self._reader = reader
        self._trials = 0 if learns else _MAX_TRIALS

    def learn(self, framed: bytes, event: bytes, parsed: ParsedEvent) -> EventTemplate | None:
        """Learn a template from an event with the stream bytes `framed`; None if it is not regular."""
        before, _, after = framed.partition(event)
        if parsed.pieces != 1 or parsed.error is not None or parsed.timing is not None:
            return None
        if parsed.final or parsed.stops:
            return None
        if len(self.known) >= _MAX_TEMPLATES or self._trials >= _MAX_TRIALS:
            return None
        if after not in _AFTER or not _BEFORE.fullmatch(before):
            return None
        self._trials += 1
        span = self._text_span(event, parsed)
        if span is None or b"\\" in event[: span[0]] + event[span[1] :]:  # replacing digits could break an escape
            return None
        tail = self._tail(event, span[1], parsed=parsed)
        if tail is None:
            return None
        head = re.escape(before) + _generalized(event[: span[0]])
        template = EventTemplate(re.compile(head), re.compile(tail + after), parsed.usage is not None, parsed.reasoning)
        self.known.append(template)
        return template

    def _text_span(self, event: bytes, parsed: ParsedEvent) -> tuple[int, int] | None:
        """Find the text: the part that changes only the parsed text when replaced."""
        expected = parsed._replace(text=_TRIAL_TEXT)
        without = parsed._replace(text="", pieces=0, reasoning=False)
        for key in _TEXT_KEYS.finditer(event):
            text = TEXT.match(event, key.end())
            head, tail = event[: key.end()], event[text.end() if text else len(event) :]
            if not tail.startswith(b'"') or self._reader(head + _TRIAL_TEXT.encode() + tail) != expected:
                continue
            if self._reader(head + tail) == without:
                return len(head), len(event) - len(tail)
        return None

    def _tail(self, event: bytes, end: int, *, parsed: ParsedEvent) -> bytes | None:
        """Return the pattern of the bytes after the text, with a group for each count."""
        usage, spans = parsed.usage, []
        names = {name: key for name, key in (_COUNTS | _DETAILS).items() if usage and getattr(usage, name) is not None}
        for name, key in names.items():
            found = re.compile(rb'"' + key + rb'": ?(' + _DIGITS + rb")").search(event, end)
            if usage is None or found is None:
                return None
            low, high = found.span(1)
            changed = self._reader(event[:low] + b"%d" % _TRIAL_COUNT + event[high:])
            if changed != parsed._replace(usage=usage._replace(**{name: _TRIAL_COUNT})):
                return None
            spans.append((low, high, name))
        pattern, at = b"", end
        for low, high, name in sorted(spans):
            pattern += _generalized(event[at:low]) + b"(?P<%b>%b)" % (name.encode(), _DIGITS)
            at = high
        absent = [name.encode() for name in (_COUNTS | _DETAILS) if name not in names]
        return pattern + _generalized(event[at:]) + b"".join(b"(?P<%b>(?!))?" % name for name in absent)


def _generalized(part: bytes) -> bytes:
    """Return a pattern of these bytes in which every number matches any number, and every id any id."""
    pattern, at = b"", 0
    for found in _VARIABLE.finditer(part):
        variable = _NUMBER if found["identity"] is None else re.escape(found["identity"]) + _PLAIN
        pattern += re.escape(part[at : found.start()]) + variable
        at = found.end()
    return pattern + re.escape(part[at:])
