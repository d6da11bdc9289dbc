"""An OpenAI-compatible server with the peculiarities that a test gives it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = json.dumps({"object": "list", "data": [{"id": "odd-model"}]}).encode()
EVENTS, JSON = "text/event-stream", "application/json"


@dataclass(frozen=True)
class Asked:
    """One request for a completion, as received."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """One response."""

    status: int = 200
    body: bytes = b""
    kind: str = JSON
    coding: str = ""
    """Content encoding of `body`; empty: none."""
    hangs: bool = False
    """Nothing follows the body, and the response does not end."""


Rule = Callable[[Asked], Reply]


def refused(message: str, status: int = 400, **more: object) -> Reply:
    """An error in OpenAI's form."""
    return Reply(status, json.dumps({"error": {"message": message, **more}}).encode())


NOT_FOUND = refused("Not found", 404)


def completed(asked: Asked, *, words: int = 5, usage: bool = True) -> Reply:
    """A stream of words, or a whole completion if no stream is requested."""
    chat = "messages" in asked.body
    counts = {"usage": {"prompt_tokens": 8, "completion_tokens": words, "total_tokens": 8 + words}} if usage else {}
    if not asked.body.get("stream"):
        text = " word" * words
        choice = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        whole = {"choices": [{"index": 0, **choice, "finish_reason": "stop"}], **counts}
        return Reply(200, json.dumps(whole).encode())
    events: list[dict[str, Any]] = []
    for number in range(words):
        end = {"finish_reason": "length" if number == words - 1 else None}
        text = f" word{number}"
        events.append({"choices": [{"index": 0, **({"delta": {"content": text}} if chat else {"text": text}), **end}]})
    if usage:
        events.append({"choices": [], **counts})
    lines = [f"data: {json.dumps(each)}\n\n" for each in events]
    return Reply(200, "".join([*lines, "data: [DONE]\n\n"]).encode(), EVENTS)


@dataclass
class OddServer:
    """A server on a thread of its own; `rule` responds to each request for a completion."""

    rule: Rule = completed
    pages: dict[str, Reply] = field(default_factory=lambda: {"/v1/models": Reply(200, MODELS)})
    key: str = ""
    """The only API key that is accepted; empty: none is needed."""
    asked: list[Asked] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.asked]


class _Threaded(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def odd_server(rule: Rule = completed) -> Iterator[OddServer]:
    odd = OddServer(rule)
    server = _Threaded(("127.0.0.1", 0), _handler(odd))
    odd.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield odd
    finally:
        odd.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(odd: OddServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(odd.pages.get(self.path.partition("?")[0], NOT_FOUND))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked = Asked(self.path, body, {name.lower(): value for name, value in self.headers.items()})
            odd.asked.append(asked)
            self._reply(odd.rule(asked))

        def _reply(self, reply: Reply) -> None:
            if odd.key and self.headers.get("authorization") != f"Bearer {odd.key}":
                reply = refused(f"invalid key in {self.headers.get('authorization')}", 401)
            self.send_response(reply.status)
            self.send_header("content-type", reply.kind)
            if reply.coding:
                self.send_header("content-encoding", reply.coding)
            self.send_header("content-length", str(len(reply.body) + reply.hangs))
            self.end_headers()
            self.wfile.write(reply.body)
            if reply.hangs:
                odd.ended.wait()
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
