"""The second transport: httpx over aiohttp, for proxies and client certificates.

It uses more CPU time per event than the raw transport and takes timestamps later: when the request's task resumes,
after aiohttp has parsed the data.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from servetop.core.clock import MonotonicClock
from servetop.core.events import RequestStatus
from servetop.engines.control.connection import address_of
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.transport import LINGER_SECONDS, RequestListener, Transport

_KEEPALIVE_SECONDS = 600.0
_OWN_HEADERS = ("accept", "accept-encoding", "user-agent", "content-type")
"""Fields that aiohttp would add by default; without `accept-encoding`, responses need not be decompressed."""


class _Attempt(SimpleNamespace):
    """One attempt to send a request, passed along by aiohttp's tracing."""

    request: RequestState
    reused: bool
    """The connection has been used before."""


class HttpxTransport(Transport):
    """Runs one task per request; aiohttp's connection pool has no size limit. Created on the running event loop."""

    def __init__(
        self, endpoint: Endpoint, *, path: str, request_ids: str, clock: MonotonicClock, listener: RequestListener
    ) -> None:
        self._endpoint = endpoint
        self._url = f"{'https' if endpoint.tls else 'http'}://{endpoint.address}{endpoint.server.target(path)}"
        self._ids = request_ids
        self._clock = clock
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._fields = endpoint.fields()
        self._tls = endpoint.tls_context()
        self._proxy = endpoint.connection.proxy
        self._http = AiohttpTransport(
            verify=False if self._tls is None else self._tls,
            trust_env=False,
            proxy=None if self._proxy is None else self._with_credentials(httpx.Proxy(self._proxy)),
            client=self._session,
        )
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._attempts: dict[asyncio.Task[Any] | None, _Attempt] = {}

    def _with_credentials(self, proxy: httpx.Proxy) -> httpx.Proxy:
        """Return the proxy with its credentials as a header field: of CONNECT for HTTPS, else of each request."""
        if proxy.auth is None:
            return proxy
        token = base64.b64encode(":".join(proxy.auth).encode()).decode()
        field = {"proxy-authorization": f"Basic {token}"}
        if self._tls is None:
            self._fields |= field
        return httpx.Proxy(proxy.url, headers=field)

    def _session(self) -> aiohttp.ClientSession:
        """Create a session whose tracing records when a request's body is written to the socket."""
        factory: Any = self._current_attempt  # aiohttp's annotation allows classes only
        tracing = aiohttp.TraceConfig(trace_config_ctx_factory=factory)
        tracing.on_request_chunk_sent.append(self._on_body_sent)
        tracing.on_connection_reuseconn.append(self._on_reused)
        connector = aiohttp.TCPConnector(
            limit=0, ssl=True if self._tls is None else self._tls, keepalive_timeout=_KEEPALIVE_SECONDS
        )
        return aiohttp.ClientSession(
            connector=connector,
            trace_configs=[tracing],
            skip_auto_headers=_OWN_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _current_attempt(self, **_: object) -> _Attempt:
        return self._attempts[asyncio.current_task()]

    async def _on_body_sent(self, _session: object, attempt: Any, _params: object) -> None:
        request: RequestState = attempt.request
        first = request.sent is None
        request.mark_sent(self._clock.now())
        if first:
            self._listener.request_sent(request)

    async def _on_reused(self, _session: object, attempt: Any, _params: object) -> None:
        attempt.reused = True

    def submit(self, request: RequestState) -> None:
        task = self._loop.create_task(self._run(request))
        self._tasks[request.id] = task
        task.add_done_callback(self._report_crash)

    def _report_crash(self, task: asyncio.Task[None]) -> None:
        """Pass an unexpected error on to the loop's exception handler."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "a request's task failed", "exception": error})

    def withdraw(self, request: RequestState) -> None:
        task = self._tasks.pop(request.id, None)
        if task is not None:
            task.cancel()

    def keep_ready(self, connections: int) -> None:
        """Do nothing: aiohttp does not open connections ahead of demand."""

    def catch_up(self) -> None:
        """Do nothing: every read is parsed at once."""

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        await self._http.aclose()

    async def _run(self, request: RequestState) -> None:
        attempt = _Attempt(request=request, reused=False)
        self._attempts[asyncio.current_task()] = attempt
        try:
            await self._send(request)
        except (httpx.HTTPError, aiohttp.ClientError, OSError, ValueError) as error:
            if attempt.reused and request.headers_at is None and _closed(error) and not request.retried:
                request.retried = True  # the server had closed the keep-alive connection: retry once
                self.submit(request)
                return
            request.connection_lost(self._error_text(error, request), self._clock.now())
        finally:
            del self._attempts[asyncio.current_task()]
        self._tasks.pop(request.id, None)
        self._listener.request_ended(request)

    async def _send(self, request: RequestState) -> None:
        headers = {**self._fields, "x-request-id": f"{self._ids}-{request.id}"}
        message = httpx.Request("POST", self._url, headers=headers, content=request.body)
        response = await self._http.handle_async_request(message)
        try:
            await self._receive(request, response)
        finally:
            await response.aclose()

    async def _receive(self, request: RequestState, response: httpx.Response) -> None:
        at = self._clock.now()
        coding = response.headers.get("content-encoding", "")
        media_type, location = (response.headers.get(name, "") for name in ("content-type", "location"))
        request.headers_received(response.status_code, at, coding=coding, media_type=media_type, location=location)
        if response.status_code == 407 and self._proxy is not None:
            request.connection_lost(self._proxy_error(407), at)
            return
        assert isinstance(response.stream, httpx.AsyncByteStream)
        body = aiter(response.stream)
        while (data := await self._next(body, request)) is not None:
            at = self._clock.now()
            request.body_received(data, at)
            self._listener.chunks_received(request)
            self._listener.send_overdue()
            if request.status is not None and request.status is not RequestStatus.OK:
                return
        request.body_complete(self._clock.now())

    @staticmethod
    async def _next(body: Any, request: RequestState) -> bytes | None:
        """Return the next piece of a response, None at its end; after its end marker wait LINGER_SECONDS at most."""
        if request.status is None:
            return await anext(body, None)
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                return await anext(body, None)
        except TimeoutError:
            return None

    def _error_text(self, error: Exception, request: RequestState) -> str:
        """Explain an error in one line without aiohttp's text, which may contain a proxy's credentials."""
        cause = error.__cause__ or error
        match cause:
            case aiohttp.ClientHttpProxyError():
                return self._proxy_error(cause.status)
            case aiohttp.ClientProxyConnectionError():
                refused = isinstance(cause.os_error, ConnectionRefusedError)
                reason = "connection refused" if refused else type(cause.os_error).__name__
                return f"cannot connect to the proxy {address_of(self._proxy or '')} ({reason}): check its address"
            case aiohttp.ClientConnectorCertificateError():
                return self._endpoint.connect_error(cause.certificate_error)
            case aiohttp.ClientConnectorError():
                return self._endpoint.connect_error(cause.os_error)
            case aiohttp.ClientPayloadError() | aiohttp.ClientConnectionError():
                return self._loss_reason(cause, request)
            case ssl.SSLError():
                return self._endpoint.connect_error(cause)
            case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
                return f"the response is not valid HTTP/1.1 ({type(cause).__name__})"
            case _:
                return f"the request to {self._endpoint.address} failed ({type(cause).__name__})"

    def _loss_reason(self, error: BaseException, request: RequestState) -> str:
        causes = (error, error.__cause__, error.__context__)
        known = (each for each in causes if isinstance(each, ssl.SSLError | ConnectionResetError))
        return self._endpoint.loss_reason(next(known, None), response_started=request.headers_at is not None)

    def _proxy_error(self, status: int) -> str:
        address = address_of(self._proxy or "")
        if status == 407:
            return f"the proxy {address} rejects the credentials (HTTP 407): set them in HTTP_PROXY or HTTPS_PROXY"
        return f"the proxy {address} refuses the connection (HTTP {status})"


def _closed(error: Exception) -> bool:
    cause = error.__cause__ or error
    return isinstance(cause, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError) and not isinstance(
        cause, aiohttp.ClientConnectorError
    )
