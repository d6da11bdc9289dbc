"""The page of `--web`: self-contained, and only for browsers with its token."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiohttp import ClientWebSocketResponse, WSMsgType, WSServerHandshakeError
from aiohttp.test_utils import TestClient, TestServer

from servetop.cli.configuration.web_address import WebAddress, is_own_name, page_url
from servetop.cli.web.web_server import LARGEST_MESSAGE, MOST_PAGES, ViewerServer
from servetop.cli.web.web_viewer import MOST_COLUMNS, MOST_LINES

TOKEN = "a-token-of-the-test"
OURS = {"Host": "127.0.0.1:8765"}
WITH_COOKIE = OURS | {"Cookie": f"servetop-token-8765={TOKEN}"}
VIEWER = (sys.executable, str(Path(__file__).with_name("stand_in_viewer.py")))


@asynccontextmanager
async def served(*words: str, host: str = "127.0.0.1") -> AsyncIterator[TestClient[Any, Any]]:
    server = ViewerServer([*VIEWER, *words], WebAddress(host=host), token=TOKEN)
    async with TestClient(TestServer(server.make_app())) as client:
        yield client


async def shown(socket: ClientWebSocketResponse) -> str:
    async with asyncio.timeout(60):
        return (await socket.receive_bytes()).decode()


async def closed(socket: ClientWebSocketResponse) -> None:
    async with asyncio.timeout(60):
        while (await socket.receive()).type not in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED):
            pass


async def ended(pid: int) -> None:
    async with asyncio.timeout(60):
        while psutil.pid_exists(pid):
            await asyncio.sleep(0.01)


async def test_the_page_loads_only_files_of_its_own_server() -> None:
    async with served() as client:
        page = await client.get("/", headers=WITH_COOKIE)
        text = await page.text()
        assert page.status == 200
        assert re.findall(r"(?:\w+:)?//[^\s\"'<>]*", text) == ["ws://127.0.0.1:8765/ws"]
        loaded = [each for each in re.findall(r'(?:href|src)="([^"]+)"', text) if not each.startswith("data:")]
        assert loaded == ["static/css/xterm.css", "static/js/textual.js"]
        for path in loaded:
            assert (await client.get(f"/{path}", headers=WITH_COOKIE)).status == 200
        assert "$" not in text


@pytest.mark.parametrize(
    "headers",
    [
        WITH_COOKIE | {"Host": "evil.example"},
        WITH_COOKIE | {"Host": '127.0.0.1:8765"><script>'},
        WITH_COOKIE | {"Origin": "http://evil.example"},
        WITH_COOKIE | {"Origin": "null"},
        OURS,
        OURS | {"Cookie": "servetop-token-8765=wrong"},
        OURS | {"Cookie": f"servetop-token-8766={TOKEN}"},
    ],
    ids=["another host", "no host", "another page", "no page", "no token", "wrong token", "another server's token"],
)
@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js", "/nothing"])
async def test_requests_without_the_token_or_from_another_origin_are_rejected(
    headers: dict[str, str], path: str
) -> None:
    async with served() as client:
        assert (await client.get(path, headers=headers)).status == 403


async def test_the_token_moves_from_the_url_into_a_cookie() -> None:
    async with served() as client:
        moved = await client.get(f"/?fontsize=20&token={TOKEN}", headers=OURS, allow_redirects=False)
        assert (moved.status, moved.headers["Location"]) == (303, "/?fontsize=20")
        cookie = moved.headers["Set-Cookie"]
        assert cookie.startswith(f"servetop-token-8765={TOKEN};")
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        page = await client.get("/?fontsize=20", headers=WITH_COOKIE)
        assert 'data-font-size="20"' in await page.text()


@pytest.mark.parametrize("path", ["/", "/ws", "/static/css/xterm.css", "/nothing", f"/?token={TOKEN}"])
@pytest.mark.parametrize("headers", [OURS, WITH_COOKIE], ids=["without the token", "with it"])
async def test_every_response_forbids_frames_and_caching(path: str, headers: dict[str, str]) -> None:
    async with served() as client:
        answer = await client.get(path, headers=headers, allow_redirects=False)
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"


async def test_the_websocket_address_is_not_a_page() -> None:
    async with served() as client:
        answer = await client.get("/ws", headers=WITH_COOKIE)
        assert answer.status == 426
        assert "WebSocket" in await answer.text()


@pytest.mark.parametrize(
    ("host", "requested", "own"),
    [
        ("127.0.0.1", "127.0.0.1:8765", True),
        ("127.0.0.1", "LOCALHOST:8765", True),
        ("127.0.0.1", "localhost:9000", True),  # forwarded by ssh
        ("127.0.0.1", "[::1]:8765", True),
        ("127.0.0.1", "evil.example:8765", False),
        ("localhost", "evil.example", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "a b", False),
        ("127.0.0.1", "[:::::::::]:1", False),
        ("0.0.0.0", "10.1.2.3:8765", True),
        ("0.0.0.0", "gpu7.cluster.example:8765", True),
        ("0.0.0.0", "gpu7;script-src *", False),
        ("GPU7", "gpu7:8765", True),
    ],
)
def test_host_headers_are_accepted_or_rejected_by_name(host: str, requested: str, own: bool) -> None:
    assert is_own_name(WebAddress(host=host), requested) is own


def test_the_printed_url_opens_the_page() -> None:
    assert page_url(WebAddress(), "abc") == "http://127.0.0.1:8765/?token=abc"
    assert page_url(WebAddress(host="::1", port=80), "abc") == "http://[::1]:80/?token=abc"
    assert "0.0.0.0" not in page_url(WebAddress(host="0.0.0.0"), "abc")


@pytest.mark.parametrize(
    ("query", "size"),
    [
        ("", "80x24"),
        ("?width=120&height=40", "120x40"),
        ("?width=100000&height=20000", f"{MOST_COLUMNS}x{MOST_LINES}"),
        ("?width=0&height=-3", "2x24"),
        ("?width=%F0%9D%9F%99&height=nan", "80x24"),
        (f"?width={'9' * 4000}", "80x24"),
    ],
)
async def test_a_terminal_is_no_larger_than_the_limit(query: str, size: str) -> None:
    async with served() as client, client.ws_connect(f"/ws{query}", headers=WITH_COOKIE) as socket:
        assert (await shown(socket)).split()[2] == size


async def test_keys_and_sizes_reach_the_viewer_and_the_viewer_ends_with_its_page() -> None:
    async with served() as client:
        async with client.ws_connect("/ws", headers=WITH_COOKIE) as socket:
            pid = int((await shown(socket)).split()[1])
            await socket.send_json(["stdin", "p"])
            assert await shown(socket) == "D p"
            await socket.send_json(["resize", {"width": 100_000, "height": 30}])
            assert await shown(socket) == f'M {{"type": "resize", "width": {MOST_COLUMNS}, "height": 30}}'
            await socket.send_json(["resize", {"width": 200_000, "height": 30}])  # the same as before: not sent on
            await socket.send_json(["blur"])
            assert await shown(socket) == 'M {"type": "blur"}'
            await socket.send_json(["ping", 17])
            assert await socket.receive_json() == ["pong", 17]
        await ended(pid)


async def test_a_viewer_that_ignores_the_signal_is_killed() -> None:
    async with served("deaf") as client:
        async with client.ws_connect("/ws", headers=WITH_COOKIE) as socket:
            pid = int((await shown(socket)).split()[1])
        await ended(pid)


@pytest.mark.parametrize(
    "message",
    [
        *("", "{", "[]", '["stdin"]', '["stdin", 7]', '["resize", {"width": "1"}]', '["resize", null]', "7"),
        *('["open_url", "http://evil.example"]', "x" * (LARGEST_MESSAGE + 1), "[" * 20_000),
    ],
    ids=lambda text: text[:20],
)
async def test_an_invalid_message_closes_the_page_and_its_viewer(message: str) -> None:
    async with served() as client, client.ws_connect("/ws", headers=WITH_COOKIE) as socket:
        pid = int((await shown(socket)).split()[1])
        await socket.send_str(message)
        await closed(socket)
        await ended(pid)


async def test_a_page_beyond_the_limit_is_rejected_until_one_closes() -> None:
    async with served() as client:
        pages = [await client.ws_connect("/ws", headers=WITH_COOKIE) for _ in range(MOST_PAGES)]
        pids = [int((await shown(page)).split()[1]) for page in pages]
        with pytest.raises(WSServerHandshakeError) as refused:
            await client.ws_connect("/ws", headers=WITH_COOKIE)
        assert refused.value.status == 503
        await pages[0].close()
        await ended(pids[0])
        async with client.ws_connect("/ws", headers=WITH_COOKIE) as page:
            assert await shown(page)
        for page in pages[1:]:
            await page.close()


async def test_a_viewer_that_fails_closes_its_page_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    async with served("fails") as client, client.ws_connect("/ws", headers=WITH_COOKIE) as socket:
        await closed(socket)
    assert "servetop: a viewer failed: no such recording\n" in capsys.readouterr().err


async def test_the_end_of_the_server_ends_the_viewers() -> None:
    async with served() as client:
        socket = await client.ws_connect("/ws", headers=WITH_COOKIE)
        pid = int((await shown(socket)).split()[1])
    await ended(pid)
