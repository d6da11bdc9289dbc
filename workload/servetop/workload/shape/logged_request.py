"""What a log says about one request, in whatever format it was written."""

from __future__ import annotations

from dataclasses import dataclass, field


class UnreadableLine(Exception):
    """A line of a log that is not of its format; it has no message, because logs hold texts of users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request of a log; None: the log has no such value. Texts and names are hidden from `repr`."""

    at: float
    """Arrival, in seconds since a moment that all lines of a log share."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    prompt: str | None = field(default=None, repr=False)
    prompt_ids: tuple[int, ...] = field(default=(), repr=False)
    """Token ids of the prompt; they replace its text."""
    session: str | int | None = field(default=None, repr=False)
    blocks: tuple[int, ...] = field(default=(), repr=False)
    """Identities of the prompt's blocks, in logs that are traces themselves."""
    block_tokens: int = 0
    """Tokens of each of these blocks."""
    key: str = field(default="", repr=False)
    """Identifies the request within its log, where other lines refer to it."""
    parent: str = field(default="", repr=False)
    """Key of an enclosing span: if that is a request too, this one is a part of it."""
    resolution: float = 0.0
    """Seconds between two times that the log can tell apart; 0: less than a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedOutput:
    """A later line about a request: the tokens of its output."""

    key: str = field(repr=False)
    output_tokens: int
    counted: bool
    """The tokens were counted by the server; otherwise they are estimated from the text."""


LoggedEvent = LoggedRequest | LoggedOutput


def token_count(value: object) -> int | None:
    """Return a number of tokens; None for a missing value, UnreadableLine for anything but a whole number from 0."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnreadableLine
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise UnreadableLine from None
    if not (0 <= number <= _MAX_TOKENS and number == int(number)):
        raise UnreadableLine
    return int(number)


_MAX_TOKENS = 10_000_000
