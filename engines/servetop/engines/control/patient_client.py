"""Questions to a server that may be too busy to answer: one whose answers are always given up is never heard."""

from __future__ import annotations

from collections.abc import Iterable

from servetop.engines.control.control_client import HttpResults, ServerClient

BUSY_PATIENCE = 10.0
"""Seconds for the next answer of a server that was late."""


class PatientClient:
    """Asks as `ServerClient` does, within `timeout` seconds; after a late answer within BUSY_PATIENCE."""

    def __init__(self, client: ServerClient, *, timeout: float) -> None:
        self._client = client
        self._timeout = self._patience = timeout

    async def get_all(self, paths: Iterable[str]) -> HttpResults:
        """Several questions at once."""
        results = await self._client.get_all(paths, timeout=self._patience)
        late = any(result.late for result in results.values())
        self._patience = max(self._timeout, BUSY_PATIENCE) if late else self._timeout
        return results
