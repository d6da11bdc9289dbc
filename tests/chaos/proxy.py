"""A proxy between servetop and a real engine, which passes on every byte and counts what it passed on.

`python -m tests.chaos.proxy --ledger FILE --to PORT [--cut SHARE]` reads HTTP, and records each complete request and
its response; a share of the responses is cut off on purpose. With `--handshakes` it does not read HTTP, and cuts off a
share of the connections after the first bytes from the server: with TLS, in the middle of the handshake.
Standard library only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.ledger import LedgerWriter, What

TOKENIZE = b"POST /tokenize "
"""Asks the engine for ids before the load; it is no request of the load."""
LIMIT = 1 << 24
"""Bytes of a line or a head at most."""
FIRST_BYTES = 60
"""Of the server's first flight that get through: a part of its hello."""


class CutOff(Exception):
    """The connection is ended on purpose."""


@dataclass
class Answer:
    """What was passed on of one answer so far."""

    started: bool = False
    status: int = 0
    text_events: int = 0
    usage: int | None = None
    finished: bool = False
    """It gave the reason for its end; later losses do not belong to the response."""
    done: bool = False
    line: bytes = b""

    @property
    def tokens(self) -> int:
        """As the engine counts them, else one for each event with a text."""
        return self.text_events if self.usage is None else self.usage

    def read(self, data: bytes) -> None:
        """A piece of the event stream."""
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:].strip())

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.finished = self.done = True
            return
        with contextlib.suppress(ValueError, KeyError, IndexError, TypeError, AttributeError):
            event = json.loads(data)
            if usage := event.get("usage"):
                self.usage = int(usage["completion_tokens"])
            choice = event["choices"][0]
            self.finished = self.finished or choice.get("finish_reason") is not None
            self.text_events += bool(choice.get("text") or choice.get("delta", {}).get("content"))


class Proxy:
    """Keep-alive connections, each with one of its own to the engine."""

    def __init__(self, ledger: LedgerWriter, *, engine: int, cut: float, chance: random.Random) -> None:
        self._ledger = ledger
        self._engine = engine
        self._cut = cut
        self._chance = chance
        self._numbers = itertools.count()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one of both ends the connection."""
        engine: asyncio.StreamWriter | None = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, CutOff):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(_header(head, b"content-length") or 0))
                number = next(self._numbers) if head.startswith(b"POST") and not head.startswith(TOKENIZE) else None
                if number is not None:
                    self._ledger.write(What.RECEIVED, number)
                answer, outcome = Answer(), What.BROKEN
                try:
                    if engine is None:
                        from_engine, engine = await asyncio.open_connection("127.0.0.1", self._engine, limit=LIMIT)
                    engine.write(head + body)
                    await engine.drain()
                    await self._pass_on(from_engine, writer, answer, cuts=number is not None)
                    outcome = What.ANSWERED if answer.status == 200 and answer.done else What.ODD
                except _Gone:
                    outcome = What.GONE
                    break
                finally:
                    if number is not None:
                        if outcome is What.BROKEN:
                            outcome = _broken(answer)
                        self._ledger.write(outcome, number, tokens=answer.tokens)
        reset(writer)
        if engine is not None:
            engine.close()

    async def _pass_on(
        self, engine: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, *, cuts: bool
    ) -> None:
        """One answer; CutOff when it is to end before that."""
        last = self._chance.randrange(8) if cuts and self._chance.random() < self._cut else -1
        head = await engine.readuntil(b"\r\n\r\n")
        if last == 0:
            raise CutOff
        await _give(writer, head, answer)
        answer.status = int(head.split(b" ", 2)[1])
        if (_header(head, b"transfer-encoding") or b"").lower() != b"chunked":
            data = await engine.readexactly(int(_header(head, b"content-length") or 0))
            await _give(writer, data, answer)
            answer.read(data)
            return
        for number in itertools.count(1):
            size = await engine.readuntil(b"\r\n")
            data = await engine.readexactly(int(size, 16) + 2)
            if number == last:
                raise CutOff
            await _give(writer, size + data, answer)
            answer.read(data[:-2])
            if len(data) == 2:
                return


def _broken(answer: Answer) -> What:
    """An answer of which not everything was passed on."""
    if answer.finished:
        return What.ODD
    return What.BROKEN if answer.started else What.NO_ANSWER


class _Gone(Exception):
    """The client ended the connection."""


async def _give(writer: asyncio.StreamWriter, data: bytes, answer: Answer) -> None:
    try:
        writer.write(data)
        await writer.drain()
    except OSError as error:
        raise _Gone from error
    if writer.is_closing():
        raise _Gone
    answer.started = True


def _header(head: bytes, wanted: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == wanted:
            return value.strip()
    return None


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection without a farewell, as a machine that is gone does."""
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


class Handshakes:
    """Passes on bytes that it cannot read."""

    def __init__(self, *, engine: int, cut: float, chance: random.Random) -> None:
        self._engine = engine
        self._cut = cut
        self._chance = chance

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            from_engine, engine = await asyncio.open_connection("127.0.0.1", self._engine)
            if self._chance.random() < self._cut:
                engine.write(await reader.read(1 << 16))
                writer.write((await from_engine.read(1 << 16))[:FIRST_BYTES])
                await writer.drain()
            else:
                await asyncio.gather(_pump(reader, engine), _pump(from_engine, writer))
            engine.close()
        if self._chance.random() < 0.5:
            reset(writer)
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def run(options: argparse.Namespace) -> None:
    ledger, chance = LedgerWriter(options.ledger), random.Random(options.seed)
    passing: Proxy | Handshakes = (
        Handshakes(engine=options.to, cut=options.cut, chance=chance)
        if options.handshakes
        else Proxy(ledger, engine=options.to, cut=options.cut, chance=chance)
    )
    listening = await asyncio.start_server(passing.serve, "127.0.0.1", 0, limit=LIMIT)
    ledger.write(What.STARTED, os.getpid(), tokens=listening.sockets[0].getsockname()[1])
    await listening.serve_forever()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.chaos.proxy")
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--to", type=int, required=True, help="the engine's port on the loopback")
    parser.add_argument("--cut", type=float, default=0.0, help="share of answers, or handshakes, that are cut off")
    parser.add_argument("--handshakes", action="store_true", help="cut off connections, not answers")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(run(parsed()))
