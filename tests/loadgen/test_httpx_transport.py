"""The httpx transport with real proxies and certificates."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import ConnectionConfig, StageConfig
from servetop.core.events import RequestStatus
from servetop.engines.control.connection import route_to
from tests.loadgen.load_run import only_record
from tests.loadgen.proxy import ForwardProxy

Start = Callable[..., Any]


def by(proxy: ForwardProxy, **settings: Any) -> ConnectionConfig:
    return ConnectionConfig(transport="httpx", proxy=proxy.url, **settings)


@contextlib.asynccontextmanager
async def proxy_to(server: Any) -> AsyncIterator[ForwardProxy]:
    proxy = ForwardProxy(server.port)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def proxy(server: Any) -> AsyncIterator[ForwardProxy]:
    async with proxy_to(server) as proxy:
        yield proxy


@pytest.fixture
async def tls_proxy(tls_server: Any) -> AsyncIterator[ForwardProxy]:
    async with proxy_to(tls_server) as proxy:
        yield proxy


@pytest.fixture
async def private_server(certificate: Path) -> AsyncIterator[Any]:
    """A server that accepts only clients with its own certificate."""
    from tests.loadgen.scripted_server import ScriptedServer

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server = ScriptedServer()
    await server.start(tls=context)
    yield server
    await server.stop()


async def test_http_requests_go_through_the_proxy_in_absolute_form(
    proxy: ForwardProxy, server: Any, start: Start
) -> None:
    record = await only_record(start("http://engine.invalid:8000", connection=by(proxy), api_key="sk-secret"))
    assert record.status is RequestStatus.OK, record.error
    assert record.output_tokens == 3
    assert record.due <= record.sent <= record.headers_at <= record.first_token_at <= record.done_at
    assert proxy.request_lines == ["POST http://engine.invalid:8000/v1/completions HTTP/1.1"]
    (request,) = server.served
    fields = request.head.lower()
    assert "authorization: bearer sk-secret" in fields
    assert "x-request-id: servetop-" in fields
    assert "accept-encoding" not in fields or "identity" in fields


async def test_https_goes_through_a_tunnel_and_checks_the_servers_certificate(
    tls_proxy: ForwardProxy, start: Start, certificate: Path
) -> None:
    run = start("https://localhost:8443", connection=by(tls_proxy, ca_cert=str(certificate)))
    record = await only_record(run)
    assert record.status is RequestStatus.OK, record.error
    assert tls_proxy.request_lines == ["CONNECT localhost:8443 HTTP/1.1"]
    rejected = await only_record(start("https://localhost:8443", connection=by(tls_proxy)))
    assert rejected.error == (
        "the certificate of localhost:8443 is not trusted (self-signed certificate): use --ca-cert FILE or --insecure"
    )


async def test_connections_through_a_proxy_are_kept_alive(proxy: ForwardProxy, start: Start) -> None:
    run = start("http://engine.invalid", connection=by(proxy))
    run.begin(StageConfig(max_concurrency=1, num_prompts=5))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.OK] * 5
    assert len(proxy.request_lines) == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_requires_credentials_is_named_in_the_error(
    tls_server: Any, start: Start, scheme: str
) -> None:
    proxy = ForwardProxy(tls_server.port, login="ann:s3cret-word")
    await proxy.start()
    rejected = await only_record(start(f"{scheme}://engine.invalid", connection=by(proxy)))
    assert rejected.error == (
        f"the proxy 127.0.0.1:{proxy.port} rejects the credentials (HTTP 407): set them in HTTP_PROXY or HTTPS_PROXY"
    )
    wrong = f"http://ann:wr0ng-word@127.0.0.1:{proxy.port}"
    refused = await only_record(
        start(f"{scheme}://engine.invalid", connection=ConnectionConfig(transport="httpx", proxy=wrong))
    )
    assert refused.error == rejected.error
    await proxy.stop()


async def test_credentials_are_sent_to_the_proxy_only_and_never_shown(server: Any, start: Start) -> None:
    proxy = ForwardProxy(server.port, login="ann:s3cret-word")
    await proxy.start()
    url = f"http://ann:s3cret-word@127.0.0.1:{proxy.port}"
    connection = ConnectionConfig(transport="httpx", proxy=url)
    assert "s3cret" not in repr(connection)
    run = start("http://engine.invalid", connection=connection)
    record = await only_record(run)
    assert record.status is RequestStatus.OK, record.error
    await server.stop()
    await proxy.stop()
    gone = await only_record(start("http://engine.invalid", connection=connection))
    assert "s3cret" not in repr(gone)
    assert gone.error == (f"cannot connect to the proxy 127.0.0.1:{proxy.port} (connection refused): check its address")


async def test_a_host_in_no_proxy_is_contacted_directly(proxy: ForwardProxy, start: Start) -> None:
    environ = {"HTTP_PROXY": proxy.url, "NO_PROXY": "engine.invalid"}
    url = "http://engine.invalid:8000"
    route = route_to(url, ConnectionConfig(transport="httpx"), environ)
    record = await only_record(start(url, connection=route.connection))
    assert record.error == "unknown host engine.invalid: check --url"
    assert proxy.request_lines == []


@pytest.mark.parametrize("transport", ["raw", "httpx"])
async def test_a_private_certificate_authority_or_no_verification_can_be_used(
    tls_server: Any, start: Start, certificate: Path, transport: str
) -> None:
    for settings in ({"ca_cert": str(certificate)}, {"insecure": True}):
        connection = ConnectionConfig(transport=transport, **settings)
        record = await only_record(start(tls_server.url, connection=connection))
        assert record.status is RequestStatus.OK, record.error


@pytest.mark.parametrize("transport", ["raw", "httpx"])
async def test_a_server_that_requires_a_client_certificate(
    private_server: Any, start: Start, certificate: Path, transport: str
) -> None:
    trusting = ConnectionConfig(transport=transport, ca_cert=str(certificate))
    rejected = await only_record(start(private_server.url, connection=trusting))
    assert rejected.error in [
        f"the server {how} the connection without a response: does it require --client-cert?"
        for how in ("closed", "reset")
    ]
    known = ConnectionConfig(
        transport=transport,
        ca_cert=str(certificate),
        client_cert=str(certificate),
        client_key=str(certificate.with_suffix(".key")),
    )
    record = await only_record(start(private_server.url, connection=known))
    assert record.status is RequestStatus.OK, record.error
