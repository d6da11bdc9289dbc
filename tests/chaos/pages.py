"""The server's other pages: models, version, health, metrics; correct, or wrong as its mode says."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from typing import Protocol

from tests.chaos.answers import bomb
from tests.chaos.hostile_text import HOSTILE

MIB = 1 << 20
PIECE = 1 << 18


class Counted(Protocol):
    """The counts that the unaltered metrics page reports."""

    running: int
    tokens: int
    prompt_tokens: int
    finished: int
    scrapes: int


def vllm_page(values: dict[str, object]) -> bytes:
    label = '{model_name="tiny"}'
    lines = [f"# TYPE vllm:{name} gauge\nvllm:{name}{label} {value}\n" for name, value in values.items()]
    return ("# HELP x y\n" + "".join(lines)).encode()


def honest(counted: Counted) -> bytes:
    return vllm_page(_values(counted))


def _values(counted: Counted) -> dict[str, object]:
    return {
        "num_requests_running": counted.running,
        "num_requests_waiting": 0,
        "kv_cache_usage_perc": min(1.0, counted.running / 100),
        "num_preemptions_total": 0,
        "prompt_tokens_total": counted.prompt_tokens,
        "generation_tokens_total": counted.tokens,
        "request_success_total": counted.finished,
    }


def all_are(word: Callable[[Counted], object]) -> Callable[[Counted], bytes]:
    return lambda counted: vllm_page(dict.fromkeys(_values(counted), word(counted)))


def backwards(counted: Counted) -> bytes:
    """Counters that fall with every page."""
    return vllm_page(dict.fromkeys(_values(counted), 10**6 - 1000 * counted.scrapes))


def blanks(counted: Counted) -> bytes:
    return b"\nvllm:num_requests_running" + b" " * 300_000 + b"x\n" + honest(counted)


def huge(counted: Counted) -> bytes:
    return honest(counted) + _padding()


def many_labels(counted: Counted) -> bytes:
    return honest(counted) + _rows()


@functools.cache
def _padding() -> bytes:
    return b"# padding of a page\n" * (50 * MIB // 20)


@functools.cache
def _rows() -> bytes:
    return b"".join(b'vllm:num_requests_running{model_name="m%d"} 1\n' % number for number in range(200_000))


def hostile_words(counted: Counted) -> bytes:
    return honest(counted).replace(b"tiny", HOSTILE.line().encode().replace(b'"', b""))


PAGES: dict[str, Callable[[Counted], bytes]] = {
    "honest": honest,
    "nan": all_are(lambda _: "NaN"),
    "infinite": all_are(lambda _: "+Inf"),
    "minus-infinite": all_are(lambda _: "-Inf"),
    "1e308": all_are(lambda counted: "1e308" if counted.scrapes % 2 else "-1e308"),
    "integers-of-400-digits": all_are(lambda _: "9" * 400),
    "negative": all_are(lambda _: "-5"),
    "words": all_are(lambda _: "many"),
    "backwards": backwards,
    "blanks": blanks,
    "50-megabytes": huge,
    "many-labels": many_labels,
    "hostile-words": hostile_words,
    "not-utf8": lambda counted: honest(counted) + b"vllm:num_requests_running \xff\xfe\n",
    "empty": lambda _: b"",
    "html": lambda _: b"<html>hello</html>",
}
"""Pages of metrics by mode."""

FAULTS = ("metrics-500", "metrics-reset", "metrics-silence", "metrics-endless", "metrics-bomb")
IDENTITIES = ("model-hostile", "model-long", "version-hostile", "models-broken", "models-deep", "models-empty")
MODES = (*PAGES, *FAULTS, *IDENTITIES)


def _models(mode: str) -> bytes:
    match mode:
        case "model-hostile":
            name = HOSTILE.text
        case "model-long":
            name = "m" * 100_000
        case "models-broken":
            return b'{"data": [{"id": '
        case "models-deep":
            return b"[" * 100_000
        case "models-empty":
            return b'{"object": "list", "data": []}'
        case _:
            name = "tiny"
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "vllm"}]}).encode()


async def send_page(path: str, writer: asyncio.StreamWriter, *, counters: Counted, mode: str) -> None:
    """Answer a GET."""
    body, status = b"{}", "404 Not Found"
    if path == "/metrics":
        counters.scrapes += 1
        if mode in FAULTS:
            await _faulty_metrics(writer, mode)
            return
        body, status = PAGES.get(mode, honest)(counters), "200 OK"
    elif path == "/v1/models":
        body, status = _models(mode), "200 OK"
    elif path == "/version":
        version = HOSTILE.text if mode == "version-hostile" else "0.32.0"
        body, status = json.dumps({"version": version}).encode(), "200 OK"
    elif path == "/health":
        body, status = b"", "200 OK"
    writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode())
    for start in range(0, len(body), PIECE):
        writer.write(body[start : start + PIECE])
        await writer.drain()
    await writer.drain()


async def _faulty_metrics(writer: asyncio.StreamWriter, mode: str) -> None:
    match mode:
        case "metrics-500":
            body = HOSTILE.raw()
            writer.write(b"HTTP/1.1 500 Oops\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        case "metrics-reset":
            writer.transport.abort()
        case "metrics-silence":
            await asyncio.sleep(3600)
        case "metrics-endless":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
            for _ in range(1000):
                writer.write(b"# more\n" * 10_000)
                await writer.drain()
            writer.transport.abort()
        case "metrics-bomb":
            body = bomb(b"# ", b"#")
            head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
            writer.write(head % len(body) + body)
    await writer.drain()
