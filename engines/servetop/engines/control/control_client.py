"""Asking a server questions over HTTP, and saying in one line why it did not answer."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from servetop.core.config import ConnectionConfig
from servetop.core.errors import UsageError
from servetop.engines.control.connection import address_of, tls_context
from servetop.engines.control.direct_http import ConnectError, DirectHttp, ProtocolError
from servetop.engines.control.http_body import ResponseError, excerpt

if TYPE_CHECKING:
    from servetop.engines.control.proxied_http import ProxiedHttp

REQUEST_TIMEOUT = 5.0
"""Seconds for one question of the control plane."""


@dataclass(frozen=True, slots=True)
class HttpResult:
    """What came back for one path: a status and a body, or the reason why nothing did."""

    status: int = 0
    body: bytes = b""
    error: str = ""
    """Why there is no answer, such as `connection refused`; empty when there is one."""
    refused: bool = False
    """No connection came about at all: nobody is there."""
    late: bool = False
    """It did not come in time; a later question may be answered."""
    age: float = 0.0
    """Seconds that what it tells was old already when it came, by a server that tells what it heard from another."""

    @property
    def ok(self) -> bool:
        """HTTP 200."""
        return self.status == 200

    def json(self) -> Any:
        """The body as JSON, or None when it is none or the status is not 200."""
        return parsed_json(self.body) if self.ok else None


NO_TLS = "it does not speak TLS: write http:// instead of https://"
_PLAIN_HTTP = ("wrong version number", "wrong_version_number", "packet length too long", "record layer failure")
"""What OpenSSL says of an answer that is no TLS."""

HttpResults = Mapping[str, HttpResult]
"""Answers by path."""


def parsed_json(body: bytes) -> Any:
    """The value of a JSON text from a server; None for what is none, or nested without end."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def bodies(results: HttpResults) -> Mapping[str, bytes]:
    """Those that are good, without their status."""
    return {path: result.body for path, result in results.items() if result.ok}


class ServerClient:
    """A server's control plane: questions with time limits, never an exception for what a server may do."""

    def __init__(self, url: str, *, api_key: str | None = None, connection: ConnectionConfig | None = None) -> None:
        self.url = url
        way = connection or ConnectionConfig()
        self._proxy = way.proxy
        headers = {"Accept-Encoding": "identity"}  # packing a page costs the engine more than sending it costs us
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        context = tls_context(way) if url.startswith("https:") else None
        self._http: DirectHttp | ProxiedHttp
        if way.proxy is None:
            self._http = DirectHttp(url, headers=headers, context=context)
        else:
            from servetop.engines.control.proxied_http import ProxiedHttp

            self._http = ProxiedHttp(url, headers=headers, context=context, proxy=way.proxy)

    async def request(
        self, path: str, *, method: str = "GET", data: Mapping[str, Any] | None = None, timeout: float = REQUEST_TIMEOUT
    ) -> HttpResult:
        """One question; `data` goes as a JSON body."""
        body = None if data is None else json.dumps(data).encode()
        try:
            async with asyncio.timeout(timeout):
                return HttpResult(*await self._http.request(method, path, body))
        except ResponseError as error:
            return HttpResult(error=str(error))
        except TimeoutError:
            return HttpResult(error=f"no answer within {timeout:.3g} s", late=True)
        except (ProtocolError, OSError, ValueError) as error:
            return HttpResult(error=self._by_proxy(_reason(error)), refused=isinstance(error, ConnectError))

    def _by_proxy(self, error: str) -> str:
        if self._proxy is None:
            return error
        wants = "407" in error
        words = "it wants other credentials (HTTP 407), put them into HTTP_PROXY or HTTPS_PROXY" if wants else error
        return f"by the proxy {address_of(self._proxy)}: {words}"

    async def get_all(self, paths: Iterable[str], *, timeout: float = REQUEST_TIMEOUT) -> HttpResults:
        """Several questions at once."""
        wanted = list(dict.fromkeys(paths))
        results = await asyncio.gather(*(self.request(path, timeout=timeout) for path in wanted))
        return dict(zip(wanted, results, strict=True))

    async def close(self) -> None:
        """Close its connections; later questions answer with error."""
        await self._http.close()


def normalise_url(text: str) -> str:
    """`gpu7:8000`, `http://gpu7:8000/`, `…/v1/` → `http://gpu7:8000`; UsageError for what is no address."""
    stripped = text.strip()
    with_scheme = stripped if "://" in stripped else f"http://{stripped}"
    try:
        parts = urlsplit(with_scheme)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(letter.isspace() for letter in stripped):
        raise UsageError(f"{text!r} is no server address: give one such as http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise UsageError("the address holds a password, which would be recorded: give the key by --api-key-env NAME")
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"


def is_local(url: str) -> bool:
    """The server is on this machine, by its address: its processes and GPUs can be looked at."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host == "localhost"


def _reason(error: BaseException) -> str:
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and cause not in causes:
        causes.append(cause)
    words = " ".join(str(each) for each in causes)
    if any(sign in words.lower() for sign in _PLAIN_HTTP):
        return NO_TLS
    known = {
        "refused": "connection refused",
        f"errno {errno.ECONNREFUSED}]": "connection refused",  # asyncio's words are its own
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
        return f"TLS: {excerpt(words.encode(), 90)}; give --ca-cert FILE, or --insecure"
    found = next((reason for sign, reason in known.items() if sign in words.lower()), None)
    return found or excerpt(str(error).encode(), 120) or type(error).__name__
