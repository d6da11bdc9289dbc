"""Pushes the metrics of a run to a collector at its begin, every five seconds, and once more at its end.

It belongs to the run's event loop and waits for nothing but its own connection. A collector that does not take them is
noted once, until it takes them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

PERIOD_SECONDS = 5.0
REQUEST_SECONDS, LAST_REQUEST_SECONDS = 4.0, 2.0
"""Time for a collector to take a request, and the last one."""
_HEADERS = {"Content-Type": "application/json", "User-Agent": "servetop"}


class OtlpPush:
    """Sends what `request` returns to an endpoint; `note` receives a line when that fails, or works again."""

    def __init__(
        self,
        endpoint: str,
        request: Callable[[], bytes],
        *,
        note: Callable[[str], None],
        period: float = PERIOD_SECONDS,
    ) -> None:
        self._endpoint, self._request, self._note, self._period = endpoint, request, note, period
        self._failing = False

    async def follow(self) -> None:
        """Push at once and until cancelled, and then once more."""
        async with httpx.AsyncClient(headers=_HEADERS, timeout=REQUEST_SECONDS, trust_env=False) as client:
            try:
                while True:
                    await self._push(client, seconds=REQUEST_SECONDS)
                    await asyncio.sleep(self._period)
            finally:
                await self._push(client, seconds=LAST_REQUEST_SECONDS)

    async def _push(self, client: httpx.AsyncClient, *, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                response = await client.post(self._endpoint, content=self._request())
            trouble = "" if response.is_success else f"HTTP {response.status_code}"
        except TimeoutError:
            trouble = f"no response within {seconds:g} s"
        except httpx.HTTPError as error:
            trouble = str(error) or type(error).__name__
        if bool(trouble) != self._failing:
            where = f"the collector at {_without_secrets(self._endpoint)}"
            self._note(f"{where} does not take metrics ({trouble})" if trouble else f"{where} takes metrics again")
        self._failing = bool(trouble)


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
