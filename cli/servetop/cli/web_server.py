"""The server behind --web: one viewer process for each page that is open; needs the extra `web`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

from servetop.cli import console

_PATIENCE = 10.0
"""Seconds that viewers may take to end."""
_ASK_EVERY = 0.1
"""Seconds between two looks whether to leave."""
_ALLOWED = "default-src 'self' 'unsafe-inline' data:; connect-src 'self' ws: wss:"
"""What the page may load: its own files, and the WebSocket of its viewer, whose address may be another name of ours."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ViewerServer(Server):
    """Textual's server, quiet, and closed to pages of other sites: a page could steer the run by its WebSocket."""

    _pages: set[asyncio.Task[object]]

    def __init__(self, command: str, *, asked_to_leave: Callable[[], str] = str, **where: Any) -> None:
        """`asked_to_leave`: asked ten times a second; the server ends with its first answer that is not empty."""
        super().__init__(command, **where)
        self._asked_to_leave = asked_to_leave

    def serve(self, debug: bool = False) -> None:
        """Serve pages until asked to leave; signals are not the server's to handle."""
        self.debug = debug
        self.initialize_logging()
        loop = asyncio.new_event_loop()
        web.run_app(self._make_app(), host=self.host, port=self.port, handle_signals=False, loop=loop, print=None)

    def _leave_when_asked(self) -> None:
        if self._asked_to_leave():
            self.request_exit()
        asyncio.get_running_loop().call_later(_ASK_EVERY, self._leave_when_asked)

    def initialize_logging(self) -> None:
        """Only what goes wrong."""
        logging.basicConfig(level=logging.WARNING)

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002
        """Say where it is."""
        self._pages = set()
        self._leave_when_asked()
        console.message(f"the dashboard is at {self.public_url} (Ctrl-C ends it)")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One page, as long as it is open."""
        task: asyncio.Task[object] | None = asyncio.current_task()
        assert task is not None
        self._pages.add(task)
        try:
            return await super().handle_websocket(request)
        finally:
            self._pages.discard(task)

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002
        """End the viewers of all pages, and wait for them."""
        pages = set(self._pages)
        for page in pages:
            page.cancel()
        if pages:
            await asyncio.wait(pages, timeout=_PATIENCE)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._own_pages_only)
        return app

    @property
    def _own_addresses(self) -> frozenset[str]:
        names = {self.host, urlsplit(self.public_url).hostname or self.host, "localhost", "127.0.0.1", "[::1]"}
        return frozenset(f"{name}:{self.port}" for name in names)

    @web.middleware
    async def _own_pages_only(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """The Host that is asked for is ours (DNS rebinding), and so is the page that asks."""
        origin = request.headers.get("Origin")
        asked = [request.host, *([urlsplit(origin).netloc] if origin else [])]
        if not self._own_addresses.issuperset(asked):
            raise web.HTTPForbidden(text="servetop: only pages of this server may ask")
        answer = await handler(request)
        if request.path == "/":
            answer.headers["Content-Security-Policy"] = _ALLOWED
        return answer
