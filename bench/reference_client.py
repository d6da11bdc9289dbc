"""A load client written with a common HTTP library, which bench/duel.py compares with servetop's sender.

    python bench/reference_client.py aiohttp|httpx --port 8100 --tokens 32 (--rate 400 --requests 3200 | --streams 256)

httpx uses httpx-aiohttp, its fast transport. Both run on uvloop, keep connections alive, and parse the JSON of
every event, as other benchmarks do. Prints one JSON object: for each request its id, when it was due and
sent, its first token, and the gaps between its tokens, in seconds on CLOCK_MONOTONIC.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field

import aiohttp
import httpx
import httpx_aiohttp
import uvloop

Post = Callable[[bytes, str], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Sends a body with a request id and yields the pieces of the response as they arrive."""
PROMPT = "the quick brown fox " * 4
BEGIN_AHEAD = 0.3


@dataclass
class Seen:
    """One request as the client saw it."""

    id: str
    due: float
    sent: float = 0.0
    first: float = 0.0
    gaps: list[float] = field(default_factory=list)
    tokens: int = 0


async def one(post: Post, body: bytes, seen: Seen) -> None:
    """Send a request and read its stream to the end."""
    buffer, last = b"", 0.0
    seen.sent = time.perf_counter()
    async with post(body, seen.id) as pieces:
        async for piece in pieces:
            now = time.perf_counter()
            buffer += piece
            *events, buffer = buffer.split(b"\n\n")
            for event in events:
                data = event.removeprefix(b"data: ")
                if data == b"[DONE]":
                    continue
                choices = json.loads(data)["choices"]
                if choices and choices[0]["text"]:
                    seen.tokens += 1
                    if seen.first:
                        seen.gaps.append(now - last)
                    else:
                        seen.first = now
                    last = now


@asynccontextmanager
async def aiohttp_post(url: str) -> AsyncIterator[Post]:
    """Use one session without a connection limit."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=1 << 18) as session:

        @asynccontextmanager
        async def post(body: bytes, request: str) -> AsyncIterator[AsyncIterator[bytes]]:
            headers = {"content-type": "application/json", "x-request-id": request}
            async with session.post(url, data=body, headers=headers) as response:
                yield response.content.iter_any()

        yield post


@asynccontextmanager
async def httpx_post(url: str) -> AsyncIterator[Post]:
    """Use httpx over aiohttp; None would mean aiohttp's default limit of 100 connections."""
    limits = httpx.Limits(max_connections=100_000, max_keepalive_connections=100_000)
    transport = httpx_aiohttp.AiohttpTransport(limits=limits)
    async with httpx.AsyncClient(transport=transport, timeout=120.0) as client:

        @asynccontextmanager
        async def post(body: bytes, request: str) -> AsyncIterator[AsyncIterator[bytes]]:
            headers = {"content-type": "application/json", "x-request-id": request}
            async with client.stream("POST", url, content=body, headers=headers) as response:
                yield response.aiter_raw()

        yield post


async def open_loop(send: Callable[[Seen], Coroutine[None, None, None]], rate: float, requests: int) -> list[Seen]:
    """Send Poisson arrivals at absolute due times, each request in a task."""
    draw, due, begin = random.Random(1), 0.0, time.perf_counter() + BEGIN_AHEAD
    found: list[Seen] = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(requests):
            due += draw.expovariate(rate)
            seen = Seen(id=f"ref-{number}", due=begin + due)
            if (ahead := seen.due - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            found.append(seen)
            tasks.create_task(send(seen))
    return found


async def closed_loop(
    send: Callable[[Seen], Coroutine[None, None, None]], streams: int, requests: int, seconds: float
) -> list[Seen]:
    """Run a number of users, each sending its next request when the last one ends, until all are sent or time is up."""
    found: list[Seen] = []
    end = time.perf_counter() + (seconds or 1e9)

    async def user() -> None:
        while len(found) < requests and time.perf_counter() < end:
            seen = Seen(id=f"ref-{len(found)}", due=time.perf_counter())
            found.append(seen)
            await send(seen)

    await asyncio.gather(*(user() for _ in range(streams)))
    return found


async def play(options: argparse.Namespace) -> list[Seen]:
    """Run the load of the options."""
    url = f"http://127.0.0.1:{options.port}/v1/completions"
    body = json.dumps(
        {
            "model": "tiny-llama",
            "prompt": PROMPT,
            "max_tokens": options.tokens,
            "stream": True,
            "ignore_eos": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    async with (aiohttp_post if options.stack == "aiohttp" else httpx_post)(url) as post:

        async def send(seen: Seen) -> None:
            await one(post, body, seen)

        if options.rate:
            return await open_loop(send, options.rate, options.requests)
        return await closed_loop(send, options.streams, options.requests, options.seconds)


def main() -> None:
    """Run the load and print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stack", choices=["aiohttp", "httpx"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--requests", type=int, default=1 << 30)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=0.0)
    json.dump([asdict(seen) for seen in uvloop.run(play(parser.parse_args()))], sys.stdout)


if __name__ == "__main__":
    main()
