"""`servetop watch` over TLS, through a proxy, below a base path and with a key: all pages are read, and only they."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from servetop.engines.control.model_list import MODELS
from servetop.engines.engine_registry import loadable_engines
from tests.cli.test_connection import proxy_to
from tests.harness import Finished, Servetop
from tests.watched_server import WatchedServer, watched_server

pytestmark = pytest.mark.integration

CERTIFICATE = Path(__file__).parents[1] / "loadgen" / "data" / "localhost.crt"
SHORT = ("--headless", "--json", "--duration", "2s")
PAGES = {
    MODELS,
    *(path for engine in loadable_engines() for path in engine.probe_paths),
    *(path for engine in loadable_engines() if (reader := engine.metrics()) is not None for path in reader.paths),
}
"""Pages by which engines are recognised, health, list of models and metrics of all engines."""


def tls() -> ssl.SSLContext:
    """A server's side of TLS with the self-signed certificate of the tests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    return context


def assert_only_read(server: WatchedServer) -> None:
    """Metrics and health were read again and again, all other pages once, and nothing else was asked for."""
    assert {method for method, _ in server.seen} == {"GET"}
    found = Counter(path.removeprefix(server.base) for _, path in server.seen)
    assert found.keys() <= PAGES
    assert found.pop("/metrics") >= 2
    assert found.pop("/health") >= 1
    assert {"/version", MODELS} <= found.keys()
    assert set(found.values()) == {1}


def assert_watched(done: Finished, *, servers: int = 1) -> None:
    """The watch saw what the servers count: three requests that run, a quarter of the KV cache."""
    assert done.code == 0, done.err
    summary = done.summary
    assert (summary["backend"], summary["model_id"], summary["engine"]["version"]) == ("vllm", "tiny", "0.11.0")
    assert (summary["server"]["max_running"], summary["server"]["max_kv_usage"]) == (3.0 * servers, 0.25)


@pytest.mark.parametrize("trust", [("--ca-cert", str(CERTIFICATE)), ("--insecure",)], ids=["ca-cert", "insecure"])
def test_a_server_behind_tls_is_watched(servetop: Servetop, trust: tuple[str, ...]) -> None:
    with watched_server(tls=tls()) as server:
        done = servetop("watch", server.url, *SHORT, *trust)
    assert_watched(done)
    assert_only_read(server)


def test_several_servers_behind_tls_are_watched(servetop: Servetop) -> None:
    with watched_server(tls=tls()) as first, watched_server(tls=tls()) as second:
        done = servetop("watch", f"a={first.url}", f"b={second.url}", *SHORT, "--ca-cert", str(CERTIFICATE))
    assert_watched(done, servers=2)
    for each in (first, second):
        assert_only_read(each)


def test_a_certificate_that_is_not_trusted_is_said_and_no_page_is_asked_for(servetop: Servetop) -> None:
    with watched_server(tls=tls()) as server:
        done = servetop("watch", server.url, *SHORT)
    assert (done.code, server.seen) == (3, [])
    assert "certificate" in done.complaint


def test_a_server_behind_a_proxy_is_watched_and_the_proxy_gets_nothing_but_get(tmp_path: Path) -> None:
    with watched_server() as server, proxy_to(urlsplit(server.url).port or 0, login="ann:s3cret-word") as proxy:
        servetop = Servetop(tmp_path, {"HTTP_PROXY": f"http://ann:s3cret-word@127.0.0.1:{proxy.port}"})
        done = servetop("watch", "http://gpu7.invalid:8000", *SHORT)
        heads = list(proxy.request_lines)
    assert_watched(done)
    assert_only_read(server)
    assert heads
    assert not [head for head in heads if not head.startswith("GET http://gpu7.invalid:8000/")]
    (recording,) = tmp_path.glob("*.servetop")
    assert b"s3cret-word" not in recording.read_bytes() + done.out.encode() + done.err.encode()


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/metrics"])
def test_a_server_below_a_base_path_is_watched(servetop: Servetop, ending: str) -> None:
    with watched_server(base="/engine-a") as server:
        done = servetop("watch", f"{server.url}{ending}", *SHORT)
    assert_watched(done)
    assert_only_read(server)
    assert done.summary["url"] == server.url


def test_two_servers_of_one_host_differ_by_their_base_path(servetop: Servetop) -> None:
    with watched_server(base="/engine-a") as first, watched_server(base="/engine-b") as second:
        done = servetop("watch", first.url, second.url, *SHORT)
    assert_watched(done, servers=2)
    assert [each["name"] for each in done.summary["replicas"]] == [
        each.url.removeprefix("http://") for each in (first, second)
    ]
    for each in (first, second):
        assert_only_read(each)


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (("--api-key-env", "GPU_KEY"), {"GPU_KEY": "sk-0123456789"}),
        (("--header-env", "authorization=GPU_KEY"), {"GPU_KEY": "Bearer sk-0123456789"}),
    ],
    ids=["api-key-env", "header-env"],
)
def test_a_key_goes_with_every_request_and_into_no_recording(
    tmp_path: Path, words: tuple[str, ...], variables: Mapping[str, str]
) -> None:
    with watched_server(key="sk-0123456789") as server:
        done = Servetop(tmp_path, variables)("watch", server.url, *SHORT, *words)
    assert_watched(done)
    assert_only_read(server)
    assert server.keys == {"Bearer sk-0123456789"}
    (recording,) = tmp_path.glob("*.servetop")
    assert b"sk-0123456789" not in recording.read_bytes() + done.out.encode() + done.err.encode()


def test_a_missing_key_is_said_with_the_option_that_gives_it(servetop: Servetop) -> None:
    with watched_server(key="sk-0123456789") as server:
        done = servetop("watch", server.url, *SHORT)
    assert done.code == 3
    assert "--api-key-env" in done.complaint
    assert {method for method, _ in server.seen} == {"GET"}
    assert server.keys == {None}
