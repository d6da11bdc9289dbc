"""Is a server spoken to by the right scheme: http:// or https://?"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

from servetop.core.errors import EngineError
from servetop.engines.control.control_client import NO_TLS, HttpResults

_HANDSHAKE_SECONDS = 3.0
_SAYS_SO = b"HTTPS"
"""In the body of status 400, by which nginx, Go and others answer plain HTTP at a TLS port."""


async def refuse_wrong_scheme(url: str, results: HttpResults) -> None:
    """EngineError when TLS meets a server of plain HTTP, or plain HTTP a TLS port, which a handshake makes sure of."""
    if any(result.error == NO_TLS for result in results.values()):
        raise EngineError(f"{url}: {NO_TLS}")
    parts = urlsplit(url)
    if parts.scheme != "http" or any(result.refused or result.late for result in results.values()):
        return
    odd = all(result.error or (result.status == 400 and _SAYS_SO in result.body) for result in results.values())
    if odd and await _speaks_tls(parts.hostname or "", parts.port or 80):
        raise EngineError(f"{url} speaks TLS: write https:// instead of http://")


async def _speaks_tls(host: str, port: int) -> bool:
    """A handshake succeeds, whoever the server says that it is."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, TimeoutError, ValueError):  # ssl.SSLError is an OSError
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.transport.abort()
        return True
    return False
