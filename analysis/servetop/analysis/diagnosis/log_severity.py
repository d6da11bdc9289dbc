"""The severity of the lines in an engine's log."""

from __future__ import annotations

import re

from servetop.core.events import Severity

_LEVEL = re.compile(
    r"(?P<warning>(?i:WARN))|(?P<info>\b(?:INFO|DEBUG)\b)|(?i:ERROR\b|\b(?:CRITICAL|FATAL|TRACEBACK)\b)"
)
"""A log level, or the word error in any case."""
_LEVEL_SEARCH_CHARS = 200
"""Leading characters of a log line that are searched for its level."""


def severity_of(text: str) -> Severity:
    """Return the severity of an engine's log line by the first level in it, because a warning may mention an error."""
    level = _LEVEL.search(text[:_LEVEL_SEARCH_CHARS])
    if level is None or level["info"]:
        return Severity.INFO
    return Severity.WARNING if level["warning"] else Severity.ERROR
