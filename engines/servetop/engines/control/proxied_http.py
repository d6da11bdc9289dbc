"""Control-plane requests to one server through a proxy, with httpx."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import httpx

from servetop.engines.control.direct_http import ConnectError, ProtocolError
from servetop.engines.control.http_body import Body, RawResponse


class ProxiedHttp:
    """The interface of DirectHttp, through a proxy."""

    def __init__(self, url: str, *, headers: Mapping[str, str], context: ssl.SSLContext | None, proxy: str) -> None:
        self._url = url
        verify = context if context is not None else False
        self._http = httpx.AsyncClient(headers=dict(headers), timeout=None, trust_env=False, proxy=proxy, verify=verify)

    async def request(self, method: str, path: str, body: bytes | None) -> RawResponse:
        """Send one request; ProtocolError `407` if the proxy rejects the credentials."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            async with self._http.stream(method, self._url + path, content=body, headers=headers) as response:
                if response.status_code == 407:
                    raise ProtocolError("407")
                content = Body(response.headers.get("Content-Encoding", ""))
                async for piece in response.aiter_raw():
                    content.take(piece)
                return RawResponse(response.status_code, content.whole(), response.headers.get("Location", ""))
        except httpx.ConnectError as error:
            raise ConnectError(str(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
            raise ProtocolError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections; later requests raise ProtocolError."""
        await self._http.aclose()
