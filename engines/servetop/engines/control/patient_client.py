"""Requests with a longer timeout after a late response, so that a saturated server is still scraped."""

from __future__ import annotations

from collections.abc import Iterable

from servetop.engines.control.control_client import HttpResults, ServerClient

BUSY_TIMEOUT = 10.0
"""Timeout in seconds of the request after a late response."""


class PatientClient:
    """A `ServerClient` with a timeout of `timeout` seconds, or BUSY_TIMEOUT after a late response."""

    def __init__(self, client: ServerClient, *, timeout: float) -> None:
        self._client = client
        self._timeout = self._current_timeout = timeout

    async def get_all(self, paths: Iterable[str]) -> HttpResults:
        """GET several paths concurrently."""
        results = await self._client.get_all(paths, timeout=self._current_timeout)
        late = any(result.late for result in results.values())
        self._current_timeout = max(self._timeout, BUSY_TIMEOUT) if late else self._timeout
        return results
