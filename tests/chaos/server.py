"""A server with OpenAI's API and vLLM's metrics, correct or faulty as its mode says, which counts its answers.

`python -m tests.chaos.server --ledger FILE --mode MODE [--page MODE] [--port N]`; other options of an engine's command
line are accepted, so that servetop can start it as one. Standard library only: it must start quickly, and share
nothing with what it watches.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.ledger import Ledger, LedgerWriter, What
from tests.chaos.modes import answer_for
from tests.chaos.pages import send_page
from tests.chaos.request import Request, Settings

LIMIT = 1 << 22
"""Bytes of a request's head at most."""


@dataclass
class Counters:
    """What /metrics says, true unless the page's mode is not."""

    running: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    finished: int = 0
    scrapes: int = field(default=0)


class Server:
    """Keep-alive connections, one answer after the other on each."""

    def __init__(self, settings: Settings, ledger: LedgerWriter, *, first_number: int) -> None:
        self.settings = settings
        self.counters = Counters()
        self.random = random.Random(f"{settings.seed}:{first_number}")
        self._ledger = ledger
        self._next = first_number

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = _content_length(head)
                body = await reader.readexactly(length)
                if head.startswith("POST"):
                    request = Request(
                        self._next, json.loads(body), reader, writer, chat="/chat/" in head.split("\r\n")[0]
                    )
                    if not await self._answer(request):
                        break
                else:
                    await self._page(head.split(" ", 2)[1], writer)
        writer.close()

    async def _answer(self, request: Request) -> bool:
        """Give one answer and write it down; False when the connection is done with."""
        self._next += 1
        self._ledger.write(What.RECEIVED, request.number)
        request.before_end = lambda: self._ledger.write(What.ENDING, request.number, tokens=request.sent)
        self.counters.running += 1
        self.counters.prompt_tokens += request.usage(0)["prompt_tokens"]
        try:
            what = await answer_for(self.settings.mode, self.random)(request, self.settings)
        except OSError:
            what = What.GONE
        finally:
            self.counters.running -= 1
            self.counters.tokens += request.sent
        self.counters.finished += what is What.ANSWERED
        self._ledger.write(what, request.number, tokens=request.sent)
        return what is not What.GONE and not request.writer.is_closing()

    async def _page(self, path: str, writer: asyncio.StreamWriter) -> None:
        await send_page(path, writer, counters=self.counters, mode=self.settings.page)


def _content_length(head: str) -> int:
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            return int(value)
    return 0


async def run(settings: Settings) -> None:
    """Serve until a signal to stop."""
    ledger = LedgerWriter(settings.ledger)
    server = Server(settings, ledger, first_number=Ledger.read(settings.ledger).count(What.RECEIVED))
    await asyncio.sleep(settings.boot)
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_requested.set)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", settings.port, limit=LIMIT, ssl=settings.ssl)
    port = listening.sockets[0].getsockname()[1]
    ledger.write(What.STARTED, os.getpid(), tokens=port)
    await stop_requested.wait()
    ledger.write(What.STOP_REQUESTED, os.getpid())
    await asyncio.sleep(settings.stop)
    listening.close()


def parsed() -> Settings:
    parser = argparse.ArgumentParser(prog="tests.chaos.server", allow_abbrev=False)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", default="honest", help="the kind of responses: tests/chaos/answers.py")
    parser.add_argument("--page", default="honest", help="what other pages say: tests/chaos/pages.py")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gap", type=float, default=0.01, help="seconds between tokens")
    parser.add_argument("--first", type=float, default=0.03, help="seconds to the first token")
    parser.add_argument("--boot", type=float, default=0.0, help="seconds before it listens")
    parser.add_argument("--stop", type=float, default=0.0, help="seconds that it takes to stop")
    parser.add_argument("--tls", default="", help="a certificate and its key, without .crt and .key")
    known, _ = parser.parse_known_args()
    context = None
    if known.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{known.tls}.crt", f"{known.tls}.key")
    return Settings(**vars(known), ssl=context)


if __name__ == "__main__":
    asyncio.run(run(parsed()))
