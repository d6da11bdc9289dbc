"""How long to wait before a server that does not respond, or a page that cannot be read, is asked again."""

from __future__ import annotations

FIRST_RETRY, LAST_RETRY = 2.0, 30.0
"""Shortest and longest delay in seconds."""
_SHARE = 0.05
"""Delay relative to the outage: at most 3 s within its first minute, so that a quick restart is soon noticed."""


def retry_delay(outage: float) -> float:
    """Return the seconds until the next attempt, after an outage of `outage` seconds."""
    return min(max(_SHARE * outage, FIRST_RETRY), LAST_RETRY)


class PageRetries:
    """When a page is read again that could not be read: after the first failure at once, then less and less often."""

    def __init__(self) -> None:
        self._failed_since: float | None = None
        self._due = 0.0

    def is_due(self, at: float) -> bool:
        """Whether to read the page at `at` seconds."""
        return self._failed_since is None or at >= self._due

    def add(self, at: float, *, read: bool) -> None:
        """Add an attempt that ended at `at`, and whether the page was read."""
        if read:
            self._failed_since = None
        elif self._failed_since is None:
            self._failed_since = self._due = at
        else:
            self._due = at + retry_delay(at - self._failed_since)
