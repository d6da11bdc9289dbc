"""An engine's output: cleaned of what would upset a terminal, bounded however much it writes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence

from servetop.core.clock import Clock
from servetop.core.events import LogLine

KEPT_LINES = 4000
"""Lines kept for the boot facts, the reasons of failures and the tail."""
LINE_BYTES = 2000
"""A longer line is cut."""
LINES_PER_SECOND = 200.0
LINES_AT_ONCE = 1000.0
"""What a burst, such as the boot, may write on top of the rate before lines are left out."""
TELL_EVERY = 1.0
"""Seconds between lines that tell how many were left out."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/]*[0-~])")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def clean_line(raw: bytes) -> str:
    """A line as text for a screen: UTF-8 with replacements, no escape sequence, control or direction mark."""
    text = raw[:LINE_BYTES].decode("utf-8", errors="replace")
    return _CONTROLS.sub("", _ESCAPES.sub("", text).expandtabs(8)).rstrip()


class LogCapture:
    """Splits an engine's output into lines, hands on as many as are bearable, and keeps the last ones.

    `\\r` ends a line as `\\n` does: that is how progress bars draw. A flood (more than LINES_PER_SECOND for
    longer than a burst) is thinned out; one line then says how many were left out.
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
        """Take the next bytes of output, cut anywhere; lines in which `log_filter` is found are dropped."""
        lines = (self._open + data).splitlines(keepends=True)
        self._open = b"" if not lines or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        if len(self._open) > LINE_BYTES:
            self._open = self._open[: LINE_BYTES + 1]  # the rest of an endless line is not worth keeping
        self._take([line for line in lines if self._matters(line)])

    def end(self) -> None:
        """The output has ended: its last line may lack an end, and what was left out must be told."""
        rest, self._open = self._open, b""
        self._take([rest] if self._matters(rest) else [])
        self._tell_left_out(self._clock.now())

    def tail(self, count: int = KEPT_LINES) -> tuple[str, ...]:
        """The last lines, oldest first, clean."""
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
