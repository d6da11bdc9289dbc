"""Captures an engine's log: escape sequences removed, rate limited, last lines kept."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence

from servetop.core.clock import Clock
from servetop.core.events import LogLine
from servetop.core.text.counted import counted

KEPT_LINES = 4000
"""Lines kept for start-up facts, failure reasons and the log tail."""
MAX_LINE_CHARS = 2000
"""Maximum characters of a line; the rest is cut."""
LINES_PER_SECOND = 200.0
BURST_LINES = 1000.0
"""Size of a burst above the rate, such as at start-up, before lines are dropped."""
REPORT_INTERVAL = 1.0
"""Seconds between the lines that report how many were dropped."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/]*[0-~])")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def clean_line(raw: bytes) -> str:
    """Decode a line for display: UTF-8, without escape sequences, control and direction characters."""
    text = raw[:MAX_LINE_CHARS].decode("utf-8", errors="replace")
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
        self._filter = log_filter
        self._kept: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._open = b""
        self._budget = BURST_LINES
        self._filled_at = clock.now()
        self._dropped = 0
        self._reported_at = clock.now()

    def feed(self, data: bytes) -> None:
        """Parse the next bytes of output, divided anywhere; lines that match `log_filter` are dropped."""
        lines = (self._open + data).splitlines(keepends=True)
        self._open = b"" if not lines or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        if len(self._open) > MAX_LINE_CHARS:
            self._open = self._open[: MAX_LINE_CHARS + 1]  # discard the rest of an endless line
        self._forward([line for line in lines if self._is_kept(line)])

    def end(self) -> None:
        """Forward an unterminated last line and report the dropped lines."""
        rest, self._open = self._open, b""
        self._forward([rest] if self._is_kept(rest) else [])
        self._report_dropped(self._clock.now())

    def tail(self, count: int = KEPT_LINES) -> tuple[str, ...]:
        """Return the last lines, decoded, oldest first."""
        texts = (self._text(raw) for raw in list(self._kept)[-count:])
        return tuple(text for text in texts if text)

    def _is_kept(self, line: bytes) -> bool:
        return bool(line.strip()) and not (self._filter and self._filter.search(line, 0, MAX_LINE_CHARS))

    def _forward(self, lines: list[bytes]) -> None:
        now = self._clock.now()
        self._refill(now)
        self._kept.extend(line[: MAX_LINE_CHARS + 1] for line in lines)
        allowed = int(min(self._budget, len(lines)))
        self._budget -= allowed
        for raw in lines[:allowed]:
            if text := self._text(raw):
                self._on_line(LogLine(at=now, text=text))
        self._dropped += len(lines) - allowed

    def _refill(self, now: float) -> None:
        refilled = (now - self._filled_at) * LINES_PER_SECOND
        self._budget, self._filled_at = min(BURST_LINES, self._budget + refilled), now
        if now - self._reported_at >= REPORT_INTERVAL:
            self._report_dropped(now)

    def _report_dropped(self, now: float) -> None:
        if self._dropped:
            self._reported_at = now
            lines = counted(self._dropped, "line")
            text = f"… {lines} dropped: the engine writes more than {LINES_PER_SECOND:.0f} per second"
            self._dropped = 0
            self._on_line(LogLine(at=now, text=text, stream="servetop"))

    def _text(self, raw: bytes) -> str:
        text = clean_line(raw)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
