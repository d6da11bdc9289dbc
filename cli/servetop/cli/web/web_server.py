"""The web server of --web: one viewer process per open page; needs the extra `web`."""

from __future__ import annotations

import asyncio
import hmac
import html
import json
import logging
import secrets
import string
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from servetop.cli.configuration.web_address import WebAddress, is_own_name, page_url
from servetop.cli.web.web_viewer import ViewerProcess
from servetop.core.system.package_data import package_path
from servetop.run import console

MOST_PAGES = 8
"""Limit of open pages; each has a viewer process."""
PAGE = "web_page/app_index.html"
"""Loads nothing from another host, unlike the page of Textual's own server."""
LARGEST_MESSAGE = 64 << 10
"""Bytes of one message from a page: more than a user types or pastes."""
HEARTBEAT = 15.0
"""Seconds between two WebSocket pings."""
_SHUTDOWN_SECONDS = 10.0
"""Seconds that viewers may take to end."""
_POLL_SECONDS = 0.1
"""Seconds between two calls of `exit_requested`."""
_FONT_SIZES = range(6, 65)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response; the page itself may also load its own files."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ViewerServer:
    """Serves the page to clients that have the token, and to no page of another site."""

    def __init__(
        self, command: Sequence[str], address: WebAddress, *, token: str, exit_requested: Callable[[], str] = str
    ) -> None:
        """`exit_requested` is polled; the server ends at its first non-empty return value."""
        self._command = command
        self._address = address
        self._token = token
        self._exit_requested = exit_requested
        self._cookie = f"servetop-token-{address.port}"
        self._pages: set[asyncio.Task[object]] = set()
        self._endings: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serves pages until an exit is requested; the caller handles signals. OSError if it cannot listen."""
        logging.basicConfig(level=logging.ERROR, handlers=[_ErrorPrinter()])
        runner = web.AppRunner(self.make_app(), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._address.host, self._address.port).start()
            console.message(f"the dashboard is at {page_url(self._address, self._token)} (Ctrl-C ends it)")
            while not self._exit_requested():
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            await runner.cleanup()

    def make_app(self) -> web.Application:
        """Return the routes, behind the access checks."""
        app = web.Application(middlewares=[self._check])
        package = find_spec("textual_serve")
        assert package is not None
        assert package.origin is not None
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/ws", self._websocket),
                web.static("/static", Path(package.origin).with_name("static")),
            ]
        )
        app.on_shutdown.append(self._end_pages)
        app.on_response_prepare.append(_add_headers)
        return app

    async def _end_pages(self, app: web.Application) -> None:  # noqa: ARG002
        """Ends the viewers of all pages, and waits for them."""
        for page in self._pages:
            page.cancel()
        if self._pages:
            await asyncio.wait(self._pages, timeout=_SHUTDOWN_SECONDS)
        if self._endings:
            await asyncio.wait(self._endings, timeout=_SHUTDOWN_SECONDS)

    @web.middleware
    async def _check(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Checks the Host (DNS rebinding), the Origin and the token of a request."""
        origin = request.headers.get("Origin")
        if not is_own_name(self._address, request.host) or (origin is not None and not _same(origin, request)):
            raise web.HTTPForbidden(text="servetop: only pages of this server may send requests\n")
        if not any(self._is_token(each) for each in (request.query.get("token"), request.cookies.get(self._cookie))):
            raise web.HTTPForbidden(text="servetop: open the address that servetop printed, with its token\n")
        return await handler(request)

    def _is_token(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    async def _page(self, request: web.Request) -> web.StreamResponse:
        """Serves the page; the first response moves the token from the address, which may be stored, to a cookie."""
        if "token" in request.query:
            kept = {key: value for key, value in request.query.items() if key != "token"}
            moved = web.HTTPSeeOther(request.rel_url.with_query(kept))
            moved.set_cookie(self._cookie, self._token, httponly=True, samesite="Lax", path="/")
            raise moved
        nonce, websocket = secrets.token_urlsafe(16), f"{'wss' if request.secure else 'ws'}://{request.host}/ws"
        size = _whole(request.query.get("fontsize"), otherwise=16)
        text = string.Template(package_path("servetop.cli", PAGE).read_text(encoding="utf-8")).substitute(
            nonce=nonce, websocket=html.escape(websocket), font_size=size if size in _FONT_SIZES else 16
        )
        return web.Response(
            text=text, content_type="text/html", headers={"Content-Security-Policy": _policy(nonce, websocket)}
        )

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        """Runs one page's viewer while the page is open."""
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=LARGEST_MESSAGE)
        if not socket.can_prepare(request):
            raise web.HTTPUpgradeRequired(text="servetop: this address is for the page's WebSocket\n")
        if len(self._pages) >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(text=f"servetop: {MOST_PAGES} pages are open, the limit: close one\n")
        task: asyncio.Task[object] | None = asyncio.current_task()
        assert task is not None
        self._pages.add(task)
        try:
            await self._serve_page(request, socket)
        finally:
            self._pages.discard(task)
        return socket

    async def _serve_page(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        size = {name: _whole(request.query.get(name), otherwise=usual) for name, usual in _USUAL_SIZE.items()}
        await socket.prepare(request)
        viewer = await ViewerProcess.start(self._command, **size)
        drawing = asyncio.ensure_future(_draw(viewer, socket))
        try:
            async for message in socket:
                if message.type is not WSMsgType.TEXT or not await _apply(viewer, socket, message.data):
                    await socket.close(code=WSCloseCode.UNSUPPORTED_DATA)
        finally:
            drawing.cancel()
            ending = asyncio.ensure_future(viewer.stop())
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            await asyncio.shield(ending)  # a cancelled server stops waiting, but the viewer still ends


_USUAL_SIZE = {"width": 80, "height": 24}


async def _draw(viewer: ViewerProcess, socket: web.WebSocketResponse) -> None:
    """Sends the viewer's output until it ends, then closes the page."""
    await viewer.pump(socket.send_bytes)
    if not socket.closed and (error := await viewer.error()):
        console.message(f"a viewer failed: {error.removeprefix('servetop: ')}")
    await socket.close()


async def _apply(viewer: ViewerProcess, socket: web.WebSocketResponse, text: str) -> bool:
    """Applies a message from the page's script; False if it is invalid."""
    try:
        match json.loads(text):
            case ["stdin", str(keys)]:
                await viewer.type(keys)
            case ["resize", {"width": int(width), "height": int(height)}]:
                await viewer.resize(width, height)
            case ["ping", str() | int() | float() as mark]:
                await socket.send_json(["pong", mark])
            case ["focus" | "blur" as what, *_]:
                await viewer.focus(gained=what == "focus")
            case _:
                return False
    except (ValueError, RecursionError):
        return False
    return True


def _same(origin: str, request: web.Request) -> bool:
    return origin.partition("://")[2].lower() == request.host.lower()


def _policy(nonce: str, websocket: str) -> str:
    """Allows the page's own files and WebSocket; xterm.js creates style sheets at run time."""
    own = f"script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    return f"{_HEADERS['Content-Security-Policy']}; {own}img-src 'self' data:; connect-src 'self' {websocket}"


def _whole(text: str | None, *, otherwise: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else otherwise


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)


class _ErrorPrinter(logging.Handler):
    """Prints the server's errors, one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        """Omits the traceback: it may contain what a page sent."""
        error: Any = record.exc_info[1] if record.exc_info else None
        console.message(f"{record.getMessage()}{f': {error}' if error else ''}")
