"""Captures an engine's log: escape sequences removed, rate limited, last lines kept."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence

from servetop.core.clock import Clock
from servetop.core.events import LogLine

KEPT_LINES = 4000
"""Lines kept for start-up facts, failure reasons and the log tail."""
LINE_BYTES = 2000
"""Maximum characters of a line; the rest is cut."""
LINES_PER_SECOND = 200.0
LINES_AT_ONCE = 1000.0
"""Lines above the rate that a burst, such as start-up, may write before lines are dropped."""
TELL_EVERY = 1.0
"""Seconds between the lines that report how many were dropped."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/]*[0-~])")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def clean_line(raw: bytes) -> str:
    """Decode a line for display: UTF-8, without escape sequences, control and direction characters."""
    text = raw[:LINE_BYTES].decode("utf-8", errors="replace")
    return _CONTROLS.sub("", _ESCAPES.sub("", text).expandtabs(8)).rstrip()


class LogCapture:
    """Splits an engine's output into lines, forwards them up to a rate limit, and keeps the last ones.

    `\\r` ends a line as `\\n` does: progress bars use it. Lines beyond LINES_PER_SECOND and the burst are
    dropped, and one line reports how many.
    """

    def __init__(
        self,
        clock: Clock,
        on_line: Callable[[LogLine], None],
        *,
        secrets: Sequence[str] = (),
        log_filter: re.Pattern[bytes] | None = None,
    ) -> None:
        self._clock = clock
        self._on_line = on_line
        self._secrets = tuple(secret for secret in secrets if secret)
        self._noise = log_filter
        self._kept: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._open = b""
        self._budget = LINES_AT_ONCE
        self._filled_at = clock.now()
        self._left_out = 0
        self._told_at = clock.now()

    def feed(self, data: bytes) -> None:
        """Parse the next bytes of output, split anywhere; lines that match `log_filter` are dropped."""
        lines = (self._open + data).splitlines(keepends=True)
        self._open = b"" if not lines or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        if len(self._open) > LINE_BYTES:
            self._open = self._open[: LINE_BYTES + 1]  # the rest of an endless line is not worth keeping
        self._take([line for line in lines if self._matters(line)])

    def end(self) -> None:
        """Forward an unterminated last line and report the dropped lines."""
        rest, self._open = self._open, b""
        self._take([rest] if self._matters(rest) else [])
        self._tell_left_out(self._clock.now())

    def tail(self, count: int = KEPT_LINES) -> tuple[str, ...]:
        """Return the last lines, decoded, oldest first."""
        texts = (self._text(raw) for raw in list(self._kept)[-count:])
        return tuple(text for text in texts if text)

    def _matters(self, line: bytes) -> bool:
        return bool(line.strip()) and not (self._noise and self._noise.search(line, 0, LINE_BYTES))

    def _take(self, lines: list[bytes]) -> None:
        now = self._clock.now()
        self._refill(now)
        self._kept.extend(line[: LINE_BYTES + 1] for line in lines)
        bearable = int(min(self._budget, len(lines)))
        self._budget -= bearable
        for raw in lines[:bearable]:
            if text := self._text(raw):
                self._on_line(LogLine(at=now, text=text))
        self._left_out += len(lines) - bearable

    def _refill(self, now: float) -> None:
        earned = (now - self._filled_at) * LINES_PER_SECOND
        self._budget, self._filled_at = min(LINES_AT_ONCE, self._budget + earned), now
        if now - self._told_at >= TELL_EVERY:
            self._tell_left_out(now)

    def _tell_left_out(self, now: float) -> None:
        if self._left_out:
            self._told_at = now
            text = f"… {self._left_out:,} lines left out: the engine writes more than {LINES_PER_SECOND:.0f} a second"
            self._left_out = 0
            self._on_line(LogLine(at=now, text=text, stream="servetop"))

    def _text(self, raw: bytes) -> str:
        text = clean_line(raw)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
