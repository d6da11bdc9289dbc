"""HTTP client of the control plane: health check, metrics and models, with errors as one-line texts."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from servetop.core.config import ConnectionConfig
from servetop.core.text.encodable import encodable_data
from servetop.engines.control.connection import address_of, tls_context
from servetop.engines.control.direct_http import ConnectError, DirectHttp, ProtocolError
from servetop.engines.control.http_body import ResponseError, excerpt
from servetop.engines.control.server_url import ServerUrl

if TYPE_CHECKING:
    from servetop.engines.control.proxied_http import ProxiedHttp

REQUEST_TIMEOUT = 5.0
"""Seconds until a control-plane request times out."""


@dataclass(frozen=True, slots=True)
class HttpResult:
    """The result of one request: status and body of the response, or the error that prevented one."""

    status: int = 0
    body: bytes = b""
    error: str = ""
    """Why there is no response, such as `connection refused`; empty if there is one."""
    refused: bool = False
    """No connection could be established."""
    late: bool = False
    """The request timed out; a later one may succeed."""
    age: float = 0.0
    """Age of the content in seconds on arrival, for content that the server scraped earlier from another server."""
    scraped_at: float = 0.0
    """When that was, Unix time by the server's clock: the same for all responses with the same content; else 0."""
    location: str = ""
    """Where a redirect leads; empty if it leads nowhere."""

    @property
    def ok(self) -> bool:
        """HTTP 200."""
        return self.status == 200

    @property
    def redirect(self) -> str:
        """Where the server says that the content is, in one phrase; empty if it does not redirect."""
        return f"redirects to {redacted_url(self.location)}" if 300 <= self.status < 400 and self.location else ""

    def json(self) -> Any:
        """Return the body parsed as JSON; None if it is not JSON or the status is not 200."""
        return parsed_json(self.body) if self.ok else None


NOT_TLS = "it does not speak TLS: write http:// instead of https://"
_PLAIN_HTTP = ("wrong version number", "wrong_version_number", "packet length too long", "record layer failure")
"""Parts of OpenSSL's error for a response that is not TLS."""

HttpResults = Mapping[str, HttpResult]
"""Results by path."""


_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def parsed_json(body: bytes) -> Any:
    """Parse JSON from a server; None if it is invalid or nested too deeply. Lone surrogates are replaced by `?`."""
    try:
        text = body.decode(json.detect_encoding(body), "replace")
        value = json.loads(text)
        if _SURROGATE_ESCAPE.search(text):
            return encodable_data(value)
    except (ValueError, RecursionError):
        return None
    return value


def bodies(results: HttpResults) -> Mapping[str, bytes]:
    """Return the bodies of the successful results, by path."""
    return {path: result.body for path, result in results.items() if result.ok}


class ServerClient:
    """Control-plane client of one server; server and network failures are returned as results, not raised."""

    def __init__(
        self,
        server: ServerUrl | str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: ConnectionConfig | None = None,
    ) -> None:
        """`headers` are the user's, for this server only; an `Authorization` among them replaces the API key's."""
        self.server = ServerUrl.parse(server) if isinstance(server, str) else server
        """May be replaced by another reading of its address, at the same origin."""
        self._api_key, self._headers = api_key, headers
        settings = connection or ConnectionConfig()
        self._proxy = settings.proxy
        origin = self.server.origin
        fields = _header_fields(api_key, headers or {})
        context = tls_context(settings) if origin.startswith("https:") else None
        self._http: DirectHttp | ProxiedHttp
        if settings.proxy is None:
            self._http = DirectHttp(origin, headers=fields, context=context)
        else:
            from servetop.engines.control.proxied_http import ProxiedHttp

            self._http = ProxiedHttp(origin, headers=fields, context=context, proxy=settings.proxy)

    def at(self, server: ServerUrl, *, connection: ConnectionConfig | None) -> ServerClient:
        """Return a client of another address; key and headers go with it only if scheme, host and port are the same."""
        if server.origin != self.server.origin:
            return ServerClient(server, connection=connection)
        return ServerClient(server, api_key=self._api_key, headers=self._headers, connection=connection)

    @property
    def url(self) -> str:
        """The server's address in its shortest form."""
        return self.server.text

    async def request(
        self, path: str, *, method: str = "GET", data: Mapping[str, Any] | None = None, timeout: float = REQUEST_TIMEOUT
    ) -> HttpResult:
        """Send one request; `data` becomes its JSON body."""
        body = None if data is None else json.dumps(data).encode()
        return await self._request(method, path, body, timeout=timeout)

    async def _request(self, method: str, path: str, body: bytes | None, *, timeout: float) -> HttpResult:
        try:
            async with asyncio.timeout(timeout):
                response = await self._http.request(method, self.server.target(path), body)
                return HttpResult(response.status, response.body, location=response.location)
        except ResponseError as error:
            return HttpResult(error=str(error))
        except TimeoutError:
            return HttpResult(error=f"no response within {timeout:.3g} s", late=True)
        except (ProtocolError, OSError, ValueError) as error:
            return HttpResult(error=self._with_proxy(_reason(error)), refused=isinstance(error, ConnectError))

    def _with_proxy(self, error: str) -> str:
        if self._proxy is None:
            return error
        rejected = "407" in error
        reason = "it rejects the credentials (HTTP 407): set them in HTTP_PROXY or HTTPS_PROXY" if rejected else error
        return f"by the proxy {address_of(self._proxy)}: {reason}"

    async def get_all(self, paths: Iterable[str], *, timeout: float = REQUEST_TIMEOUT) -> HttpResults:
        """GET several paths concurrently."""
        wanted = list(dict.fromkeys(paths))
        if len(wanted) == 1:  # most engines have one metrics page: no task is needed for it
            return {wanted[0]: await self.request(wanted[0], timeout=timeout)}
        results = await asyncio.gather(*(self.request(path, timeout=timeout) for path in wanted))
        return dict(zip(wanted, results, strict=True))

    async def close(self) -> None:
        """Close the connections; later requests return an error."""
        await self._http.close()


def _header_fields(api_key: str | None, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the header fields of every request: the user's replace servetop's own, but for those about the content."""
    fields = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    fields |= {name.lower(): value for name, value in headers.items()} | {"accept": "*/*"}
    return {**fields, "accept-encoding": "identity"}  # compressing a page costs the engine more than sending it


def redacted_url(url: str) -> str:
    """Return a URL without its user and the values of its query, either of which may be secret."""
    before, mark, query = url.partition("?")
    scheme, separator, rest = before.partition("://")
    host, slash, path = rest.partition("/")
    shown = f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}" if separator else before
    names = "&".join(f"{each.partition('=')[0]}=…" for each in query.split("&") if each)
    return f"{shown}{mark}{names}"


def is_local(url: str) -> bool:
    """Whether the address is on this machine, so that the server's processes and GPUs can be inspected."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host == "localhost"


def _reason(error: BaseException) -> str:
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and cause not in causes:
        causes.append(cause)
    text = " ".join(str(each) for each in causes)
    if any(sign in text.lower() for sign in _PLAIN_HTTP):
        return NOT_TLS
    known = {
        "refused": "connection refused",
        f"errno {errno.ECONNREFUSED}]": "connection refused",  # the text of asyncio's own error
        f"errno {errno.EHOSTUNREACH}]": "host unreachable",
        f"errno {errno.ENETUNREACH}]": "host unreachable",
        "not known": "no such host",
        "temporary failure in name resolution": "no such host",
        "no address associated": "no such host",
        "unreachable": "host unreachable",
        "reset": "connection reset",
        "all connection attempts failed": "connection refused",
    }
    if any(isinstance(each, ssl.SSLError) for each in causes):
        return f"TLS: {excerpt(text.encode(), 90)}; give --ca-cert FILE, or --insecure"
    found = next((reason for sign, reason in known.items() if sign in text.lower()), None)
    return found or excerpt(str(error).encode(), 120) or type(error).__name__
