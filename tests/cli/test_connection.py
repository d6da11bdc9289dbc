"""The whole command with a server behind a proxy: what is reported, and what stays secret."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, answers, printed_url, wait_for
from tests.loadgen.proxy import ForwardProxy

pytestmark = pytest.mark.integration

LOAD = ("--num-prompts", "5", "--request-rate", "50", "--output-len", "3", "--json")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with Servetop(tmp_path_factory.mktemp("none")).started("serve", "--port", "0") as process:
        url = printed_url(process)
        wait_for(lambda: answers(f"{url}/health"), seconds=20, what="the simulator's start")
        yield int(url.rpartition(":")[2])
        process.terminate()
        process.communicate(timeout=120)


@contextlib.contextmanager
def proxy_to(port: int, *, login: str) -> Iterator[ForwardProxy]:
    """Its event loop runs in a thread of its own."""
    loop, proxy = asyncio.new_event_loop(), ForwardProxy(port, login=login)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(proxy.start(), loop).result(10)
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_run_through_a_proxy_records_the_proxy_without_its_credentials(simulator: int, tmp_path: Path) -> None:
    with proxy_to(simulator, login="ann:s3cret-word") as proxy:
        environment = {"HTTP_PROXY": f"http://ann:s3cret-word@127.0.0.1:{proxy.port}", "KEY": "sk-0123456789"}
        servetop = Servetop(tmp_path, environment)
        done = servetop("--url", "http://gpu7.invalid:8000", "--api-key-env", "KEY", *LOAD)
        assert done.code in RAN, done.err
        assert done.summary["completed"] == 5
    (file,) = tmp_path.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(file)) as reader:
        notes = [note.text for note in reader.notes()]
    assert f"transport httpx, because of the proxy 127.0.0.1:{proxy.port}" in notes
    everything = file.read_bytes() + done.out.encode() + done.err.encode()
    assert b"s3cret-word" not in everything
    assert b"sk-0123456789" not in everything


def test_a_proxy_that_is_down_or_rejects_the_credentials_is_reported(simulator: int, tmp_path: Path) -> None:
    words = ("--url", "http://gpu7.invalid:8000", *LOAD)
    with proxy_to(simulator, login="ann:s3cret-word") as proxy:
        refused = Servetop(tmp_path)(*words, "--proxy", proxy.url)
        assert refused.code == 3
        assert f"by the proxy 127.0.0.1:{proxy.port}: it rejects the credentials (HTTP 407)" in refused.complaint
    gone = Servetop(tmp_path)(*words, "--proxy", proxy.url)
    assert gone.code == 3
    assert f"by the proxy 127.0.0.1:{proxy.port}: connection refused" in gone.complaint


def test_the_httpx_transport_on_request(servetop: Servetop) -> None:
    done = servetop("--transport", "httpx", *LOAD)
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 5
    assert servetop("--proxy", "http://proxy:3128", *LOAD).code == 2
