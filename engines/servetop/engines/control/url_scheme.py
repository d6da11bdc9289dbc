"""Detects a URL with the wrong scheme: http:// for a TLS port, or https:// for plain HTTP."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

from servetop.core.errors import EngineError
from servetop.engines.control.control_client import NOT_TLS, HttpResults

_HANDSHAKE_SECONDS = 3.0
_TLS_EXPECTED = b"HTTPS"
"""Part of the body of the status 400 that nginx, Go and others send for plain HTTP on a TLS port."""


async def refuse_wrong_scheme(url: str, results: HttpResults) -> None:
    """Raise EngineError if the scheme is wrong; a TLS handshake confirms a TLS port."""
    if any(result.error == NOT_TLS for result in results.values()):
        raise EngineError(f"{url}: {NOT_TLS}")
    parts = urlsplit(url)
    if parts.scheme != "http" or any(result.refused or result.late for result in results.values()):
        return
    suspicious = all(
        result.error or (result.status == 400 and _TLS_EXPECTED in result.body) for result in results.values()
    )
    if suspicious and await _speaks_tls(parts.hostname or "", parts.port or 80):
        raise EngineError(f"{url} speaks TLS: write https:// instead of http://")


async def _speaks_tls(host: str, port: int) -> bool:
    """Whether a TLS handshake succeeds, regardless of the certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, TimeoutError, ValueError):  # ssl.SSLError is an OSError
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.transport.abort()
        return True
    return False
