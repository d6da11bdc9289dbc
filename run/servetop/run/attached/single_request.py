"""Sends one request outside of any load, with the transport of a load, and reads its response as a load does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from servetop.core.clock import MonotonicClock
from servetop.core.config import ConnectionConfig, WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.core.interfaces.dialect import Chunk, Dialect, Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.content_coding import CodingError, Decoder, decoder_for
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.transport.transport import RequestListener
from servetop.loadgen.transport.transport_factory import transport_factory
from servetop.workload.stages.stage_run import Due

MAX_KEPT_BYTES = 1 << 20
"""Bytes of a response that are kept as received; the rest is only read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTarget:
    """The server that receives the requests, and what it needs to accept them."""

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connection: ConnectionConfig = field(default=ConnectionConfig(), repr=False)
    """Fully resolved."""
    token_ids: tuple[int, ...] = ()
    """A text by the server's tokenizer, for prompts of token ids; empty if it does not offer it."""
    continuous_usage: bool = False
    """The server supports `stream_options.continuous_usage_stats`."""


class SingleRequest(RequestState):
    """A request that also keeps its response as received."""

    __slots__ = ("_kept", "_plain", "media_type", "pieces", "read", "sent_body")

    def __init__(self, prepared: PreparedRequest, *, dialect: Dialect, at: float) -> None:
        super().__init__(0, Due(stage=0, at=at), prepared=prepared, dialect=dialect, limited=False)
        self.sent_body = prepared.body
        self.pieces: list[tuple[bytes, float]] = []
        """Decoded bytes of the body and when they arrived."""
        self.read: list[tuple[Chunk, float]] = []
        """What the parser made of it, and when it arrived."""
        self.media_type = ""
        self._plain: Decoder | None = None
        self._kept = 0

    @property
    def received(self) -> bytes:
        """The body as received, decoded, up to MAX_KEPT_BYTES."""
        return b"".join(data for data, _ in self.pieces)

    def headers_received(
        self, http_status: int, at: float, *, coding: str = "", media_type: str = "", location: str = ""
    ) -> None:
        """Apply the response's headers, and keep its media type."""
        super().headers_received(http_status, at, coding=coding, media_type=media_type, location=location)
        self.media_type = media_type
        if self.status is None:
            self._plain = decoder_for(coding)

    def body_received(self, data: bytes, at: float, *, since: float | None = None) -> None:
        """Keep a piece of the body, and parse it."""
        if self._kept < MAX_KEPT_BYTES:
            self._keep(data, at)
        super().body_received(data, at, since=since)

    def _keep(self, data: bytes, at: float) -> None:
        try:
            plain = data if self._plain is None else self._plain.decode(data)
        except CodingError:
            return  # ends the request with this error
        kept = plain[: MAX_KEPT_BYTES - self._kept]
        self._kept += len(kept)
        self.pieces.append((kept, at))

    def _add(self, chunk: Chunk, at: float) -> None:
        if self.status is None:
            self.read.append((chunk, at))
        super()._add(chunk, at)

    def frame_literals(self) -> tuple[bytes, bytes] | None:
        """Return None: every event is parsed when it arrives."""
        return None


class _EndListener(RequestListener):
    """Waits for the end of the only request."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def request_sent(self, request: RequestState) -> None:
        """Do nothing: the request knows its times."""

    def chunks_received(self, request: RequestState) -> None:
        """Do nothing: the request keeps its response."""

    def response_complete(self, request: RequestState, at: float) -> None:
        """Do nothing: the outcome counts."""

    def request_ended(self, request: RequestState) -> None:
        del request
        self.ended.set()

    def send_overdue(self) -> None:
        """Do nothing: there is no other request."""


async def send_single(
    target: RequestTarget, dialect: str, *, prompt: Prompt, workload: WorkloadConfig, timeout: float
) -> SingleRequest:
    """Send one request and wait for its end, for `timeout` seconds at most; failures are its status and error."""
    clock = MonotonicClock()
    workload = replace(workload, headers=target.headers, header_env={})
    setup = SenderSetup(
        url=target.url,
        model=target.model,
        workload=workload,
        origin_ns=clock.origin_ns,
        api_key=target.api_key,
        connection=target.connection,
    )
    api = dialect_for(dialect, model=target.model, continuous_usage=target.continuous_usage)
    request = _request(api, prompt, workload, at=clock.now())
    listener = _EndListener()
    transport = transport_factory(setup, api, clock)(listener)
    try:
        async with asyncio.timeout(timeout):
            transport.submit(request)
            await listener.ended.wait()
    except TimeoutError:
        request.abandon(RequestStatus.TIMEOUT, clock.now(), reason=f"no complete response within {timeout:g} s")
        transport.withdraw(request)
    finally:
        await transport.close()
    return request


def _request(dialect: Dialect, prompt: Prompt, workload: WorkloadConfig, *, at: float) -> SingleRequest:
    prepared = PreparedRequest(
        prompt,
        dialect.body(prompt, workload),
        streamed=workload.stream,
        keep_texts=True,
        choices=workload.n,
        max_tokens=prompt.output_tokens * workload.n,
    )
    return SingleRequest(prepared, dialect=dialect, at=at)
