"""Loads the simulator's server from one raw client; prints tokens per second and their lateness.

python bench/sim_server.py [--streams 256] [--seconds 10] [--time-scale 0.28]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys

import orjson
import uvloop

from servetop.core.clock import MonotonicClock


class Reader(asyncio.Protocol):
    """Keeps one stream going and counts its events."""

    def __init__(self, port: int, tokens: int) -> None:
        body = {"prompt": [1] * 128, "max_tokens": tokens, "ignore_eos": True, "stream": True}
        data = orjson.dumps(body)
        self._request = b"POST /v1/completions HTTP/1.1\r\nhost: x:%d\r\ncontent-length: %d\r\n\r\n" % (port, len(data))
        self._request += data
        self.events = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self._transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Count events; send the next request after the last one."""
        self.events += data.count(b"data: {")
        if b"[DONE]" in data:
            self._transport.write(self._request)  # type: ignore[attr-defined]


async def load(port: int, streams: int, seconds: float) -> tuple[float, str]:
    """Return tokens per second over `seconds`, after 2 s of warm-up, and the metrics page."""
    loop = asyncio.get_running_loop()
    readers = []
    for _ in range(streams):
        _, reader = await loop.create_connection(lambda: Reader(port, 512), "127.0.0.1", port)
        readers.append(reader)
    await asyncio.sleep(2.0)
    clock, before = MonotonicClock(), sum(reader.events for reader in readers)
    await asyncio.sleep(seconds)
    rate = (sum(reader.events for reader in readers) - before) / clock.now()
    source, sink = await asyncio.open_connection("127.0.0.1", port)
    sink.write(b"GET /metrics HTTP/1.1\r\nconnection: close\r\n\r\n")
    return rate, (await source.read()).decode()


def lateness_quantile(page: str, share: float) -> str:
    """Return the smallest bucket bound that includes the fraction `share` of the tokens."""
    pairs = re.findall(r'servetop_sim_token_lateness_seconds_bucket\{.*?le="([^"]+)".*?\} (\S+)', page)
    total = float(pairs[-1][1])
    return next(bound for bound, count in pairs if float(count) >= share * total)


def main() -> None:
    """Start a server, load it, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--time-scale", default="0.28")
    parser.add_argument("--port", type=int, default=18433)
    options = parser.parse_args()
    command = [
        sys.executable,
        "-m",
        "servetop",
        "serve",
        "--port",
        str(options.port),
        "--gpu",
        "a100-40",
    ]
    command += ["--time-scale", options.time_scale, "--kv-blocks", "20000"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    while "ready" not in server.stderr.readline():
        pass
    rate, page = uvloop.run(load(options.port, options.streams, options.seconds))
    server.terminate()
    server.wait()
    bounds = ", ".join(f"p{share:g} <= {lateness_quantile(page, share / 100)} s" for share in (50, 99, 99.9))
    sys.stdout.write(f"{options.streams} streams: {rate:,.0f} tokens/s; lateness {bounds}\n")


if __name__ == "__main__":
    main()
