"""The page of `--web`: complete by itself, and for nobody else's pages."""

from __future__ import annotations

import re

import pytest
from aiohttp.test_utils import TestClient, TestServer

from servetop.cli.web import WEB_PAGE
from servetop.cli.web_server import ViewerServer

OURS = {"Host": "127.0.0.1:8765"}


async def test_the_page_names_no_other_host_and_all_that_it_loads_is_there() -> None:
    server = ViewerServer("true", host="127.0.0.1", port=8765, title="servetop", templates_path=WEB_PAGE)
    async with TestClient(TestServer(await server._make_app())) as client:
        page = await client.get("/", headers=OURS)
        text = await page.text()
        assert page.status == 200
        assert re.findall(r"(?:\w+:)?//[^\s\"'<>]*", text) == ["ws://127.0.0.1:8765/ws"]
        loaded = [each for each in re.findall(r'(?:href|src)="([^"]+)"', text) if not each.startswith("data:")]
        assert loaded == ["static/css/xterm.css", "static/js/textual.js"]
        for path in loaded:
            assert (await client.get(f"/{path}", headers=OURS)).status == 200
        assert page.headers["Content-Security-Policy"].startswith("default-src 'self'")


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, OURS | {"Origin": "http://evil.example"}],
    ids=["another host", "another page"],
)
async def test_who_asks_by_another_name_or_from_another_page_is_refused(headers: dict[str, str]) -> None:
    server = ViewerServer("true", host="127.0.0.1", port=8765, title="servetop", templates_path=WEB_PAGE)
    async with TestClient(TestServer(await server._make_app())) as client:
        assert (await client.get("/", headers=headers)).status == 403
