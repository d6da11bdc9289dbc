"""An engine that fails on request: `python mortal_server.py --die-at 3`, besides an engine's own options.

It speaks vLLM's wire, without metrics. Requests are counted from 1, in the order in which they come.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODELS = json.dumps({"object": "list", "data": [{"id": "tiny", "object": "model"}]}).encode()
TOKENS = 4
TOKEN = b'data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}\n\n'
LAST = b'data: {"choices":[{"index":0,"text":"a","finish_reason":"length"}]}\n\n'
USAGE = f'data: {{"choices":[],"usage":{{"prompt_tokens":8,"completion_tokens":{TOKENS}}}}}\n\n'.encode()
DONE = b"data: [DONE]\n\n"


class MortalServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__((options.host, options.port), _Handler)
        self.options = options
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.answered = 0


class QuietHandler(BaseHTTPRequestHandler):
    """Keeps connections open and logs nothing."""

    protocol_version = "HTTP/1.1"

    def reply(self, status: int, body: bytes) -> None:
        """Send a complete response."""
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Handler(QuietHandler):
    server: MortalServer

    def do_GET(self) -> None:
        answers = {"/v1/models": (200, MODELS), "/health": (200, b"")}
        self.reply(*answers.get(self.path, (404, b"{}")))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        options, number = self.server.options, next(self.server.numbers)
        if options.fail_every and number % options.fail_every == 0:
            self.reply(500, b'{"error":{"message":"no luck"}}')
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in self._pieces():
            if number == options.die_at and piece is LAST:
                _die()
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        with self.server.lock:
            self.server.answered += 1
            if self.server.answered == options.die_after:
                _die()

    def _pieces(self) -> Iterator[bytes]:
        for _ in range(TOKENS - 1):
            yield TOKEN
            threading.Event().wait(self.server.options.gap)
        yield from (LAST, USAGE, DONE, b"")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _end(options: argparse.Namespace) -> None:
    if options.stop_file is not None:
        options.stop_file.touch()
    threading.Event().wait(options.linger)
    sys.exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--gap", type=float, default=0.0, help="seconds between two tokens")
    parser.add_argument("--fail-every", type=int, default=0, help="every so manieth request gets status 500")
    parser.add_argument("--die-at", type=int, default=0, help="killed in the middle of this request's answer")
    parser.add_argument("--die-after", type=int, default=0, help="killed after this number of responses")
    parser.add_argument("--never-ready-once", type=Path, help="never ready again, when it was started with this before")
    parser.add_argument("--boot-until", type=Path, help="does not listen before there is this file")
    parser.add_argument("--linger", type=float, default=0.0, help="seconds from SIGINT to its end")
    parser.add_argument("--stop-file", type=Path, help="file to create when a signal to stop arrives")
    options, _ = parser.parse_known_args()
    if options.die_after < 0:
        _die()
    if options.never_ready_once is not None:
        if options.never_ready_once.exists():
            options.never_ready_once.with_suffix(".again").touch()
            signal.pause()
        options.never_ready_once.touch()
    while options.boot_until is not None and not options.boot_until.exists():
        threading.Event().wait(0.05)
    signal.signal(signal.SIGINT, lambda *_: _end(options))
    MortalServer(options).serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
