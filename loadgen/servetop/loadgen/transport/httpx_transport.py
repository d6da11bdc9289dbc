"""The second transport: httpx over aiohttp, for proxies, client certificates and whatever httpx can reach.

It costs more processor time for each event than the raw one, and stamps a little later: bytes are stamped when the
request's task is resumed, after aiohttp has parsed them, where the raw transport stamps them as they leave the socket.
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
from servetop.loadgen.transport.raw_transport import LINGER_SECONDS, ExchangeListener

_KEEPALIVE_SECONDS = 600.0
_OWN_HEADERS = ("accept", "accept-encoding", "user-agent", "content-type")
"""Those that aiohttp would add of its own accord; an answer that is not compressed costs no time to unpack."""


class _Flight(SimpleNamespace):
    """An exchange under way, as aiohttp's tracing carries it along."""

    exchange: RequestState
    reused: bool
    """Its connection had carried a request before."""


class HttpxTransport:
    """One task an exchange; made on the running event loop. Connections are pooled by aiohttp, without a limit."""

    def __init__(
        self, endpoint: Endpoint, *, path: str, request_ids: str, clock: MonotonicClock, listener: ExchangeListener
    ) -> None:
        self._endpoint = endpoint
        self._url = f"{'https' if endpoint.tls else 'http'}://{endpoint.address}{endpoint.prefix}{path}"
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
            proxy=None if self._proxy is None else self._introduced(httpx.Proxy(self._proxy)),
            client=self._session,
        )
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._flights: dict[asyncio.Task[Any] | None, _Flight] = {}

    def _introduced(self, proxy: httpx.Proxy) -> httpx.Proxy:
        """The proxy, its credentials as a header field of what it reads: of CONNECT, or of each request."""
        if proxy.auth is None:
            return proxy
        word = base64.b64encode(":".join(proxy.auth).encode()).decode()
        field = {"proxy-authorization": f"Basic {word}"}
        if self._tls is None:
            self._fields |= field
        return httpx.Proxy(proxy.url, headers=field)

    def _session(self) -> aiohttp.ClientSession:
        """Whose tracing stamps the moment at which a body goes to the socket."""
        factory: Any = self._flight_in_hand  # aiohttp's annotation allows for classes only
        tracing = aiohttp.TraceConfig(trace_config_ctx_factory=factory)
        tracing.on_request_chunk_sent.append(self._body_goes_out)
        tracing.on_connection_reuseconn.append(self._reused)
        connector = aiohttp.TCPConnector(
            limit=0, ssl=True if self._tls is None else self._tls, keepalive_timeout=_KEEPALIVE_SECONDS
        )
        return aiohttp.ClientSession(
            connector=connector,
            trace_configs=[tracing],
            skip_auto_headers=_OWN_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _flight_in_hand(self, **_: object) -> _Flight:
        return self._flights[asyncio.current_task()]

    async def _body_goes_out(self, _session: object, flight: Any, _params: object) -> None:
        exchange: RequestState = flight.exchange
        first = exchange.sent is None
        exchange.was_sent(self._clock.now())
        if first:
            self._listener.sent(exchange)

    async def _reused(self, _session: object, flight: Any, _params: object) -> None:
        flight.reused = True

    def submit(self, exchange: RequestState) -> None:
        """See Transport."""
        task = self._loop.create_task(self._carry(exchange))
        self._tasks[exchange.id] = task
        task.add_done_callback(self._surface)

    def _surface(self, task: asyncio.Task[None]) -> None:
        """An error that nothing foresaw must not end in silence."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "an exchange failed", "exception": error})

    def withdraw(self, exchange: RequestState) -> None:
        """See Transport."""
        task = self._tasks.pop(exchange.id, None)
        if task is not None:
            task.cancel()

    def keep_ready(self, connections: int) -> None:
        """See Transport; aiohttp opens no connections ahead of need."""

    def catch_up(self) -> None:
        """See Transport; nothing is put aside here."""

    async def close(self) -> None:
        """See Transport."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        await self._http.aclose()

    async def _carry(self, exchange: RequestState) -> None:
        flight = _Flight(exchange=exchange, reused=False)
        self._flights[asyncio.current_task()] = flight
        try:
            await self._try(exchange)
        except (httpx.HTTPError, aiohttp.ClientError, OSError, ValueError) as error:
            if flight.reused and exchange.headers_at is None and _closed(error) and not exchange.retried:
                exchange.retried = True  # a kept-alive connection that the server had closed: it never got there
                self.submit(exchange)
                return
            exchange.broke(self._why(error, exchange), self._clock.now())
        finally:
            del self._flights[asyncio.current_task()]
        self._tasks.pop(exchange.id, None)
        self._listener.ended(exchange)

    async def _try(self, exchange: RequestState) -> None:
        fields = {**self._fields, "x-request-id": f"{self._ids}-{exchange.id}"}
        request = httpx.Request("POST", self._url, headers=fields, content=exchange.body)
        response = await self._http.handle_async_request(request)
        try:
            await self._take_in(exchange, response)
        finally:
            await response.aclose()

    async def _take_in(self, exchange: RequestState, response: httpx.Response) -> None:
        at = self._clock.now()
        kind = response.headers.get("content-type", "").lower()
        is_stream, coding = not kind.startswith("application/json"), response.headers.get("content-encoding", "")
        exchange.answered(response.status_code, at, is_stream=is_stream, coding=coding)
        if response.status_code == 407 and self._proxy is not None:
            exchange.broke(self._proxy_refuses(407), at)
            return
        assert isinstance(response.stream, httpx.AsyncByteStream)
        pieces = aiter(response.stream)
        while (data := await self._next(pieces, exchange)) is not None:
            at = self._clock.now()
            exchange.received(data, at)
            self._listener.progressed(exchange)
            self._listener.send_overdue()
            if exchange.status is not None and exchange.status is not RequestStatus.OK:
                return
        exchange.complete(self._clock.now())

    @staticmethod
    async def _next(pieces: Any, exchange: RequestState) -> bytes | None:
        """The next piece of an answer, None at its end; after its end marker only so long as it may linger."""
        if exchange.status is None:
            return await anext(pieces, None)
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                return await anext(pieces, None)
        except TimeoutError:
            return None

    def _why(self, error: Exception, exchange: RequestState) -> str:
        """One line; never aiohttp's own words, which may name a proxy with its credentials."""
        cause = error.__cause__ or error
        match cause:
            case aiohttp.ClientHttpProxyError():
                return self._proxy_refuses(cause.status)
            case aiohttp.ClientProxyConnectionError():
                refused = isinstance(cause.os_error, ConnectionRefusedError)
                how = "connection refused" if refused else type(cause.os_error).__name__
                return f"the proxy {address_of(self._proxy or '')} does not answer ({how}): is its address right?"
            case aiohttp.ClientConnectorCertificateError():
                return self._endpoint.why(cause.certificate_error)
            case aiohttp.ClientConnectorError():
                return self._endpoint.why(cause.os_error)
            case aiohttp.ClientPayloadError() | aiohttp.ClientConnectionError():
                return self._lost(cause, exchange)
            case ssl.SSLError():
                return self._endpoint.why(cause)
            case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
                return f"the server does not speak HTTP/1.1 as it should ({type(cause).__name__})"
            case _:
                return f"the exchange with {self._endpoint.address} failed ({type(cause).__name__})"

    def _lost(self, error: BaseException, exchange: RequestState) -> str:
        causes = (error, error.__cause__, error.__context__)
        telling = (each for each in causes if isinstance(each, ssl.SSLError | ConnectionResetError))
        return self._endpoint.lost(next(telling, None), heard=exchange.headers_at is not None)

    def _proxy_refuses(self, status: int) -> str:
        where = address_of(self._proxy or "")
        if status == 407:
            return f"the proxy {where} wants other credentials (HTTP 407): put them into HTTP_PROXY or HTTPS_PROXY"
        return f"the proxy {where} refuses the connection (HTTP {status})"


def _closed(error: Exception) -> bool:
    cause = error.__cause__ or error
    return isinstance(cause, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError) and not isinstance(
        cause, aiohttp.ClientConnectorError
    )
