"""An OpenAI-compatible server that fails as told: it exits for some batch sizes at the start, for others under load.

`python failing_engine.py --port 8000 --max-num-seqs 16 --no-start 16 --dies-at 32`
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
PAGES: dict[str, Any] = {
    "/v1/models": {"data": [{"id": "org/m", "owned_by": "vllm", "max_model_len": 4096}]},
    "/version": {"version": "0.27.1"},
}


class Handler(BaseHTTPRequestHandler):
    """Answers as vLLM does, until it dies."""

    protocol_version = "HTTP/1.1"
    dies = False

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        """Send a page, empty if it is unknown."""
        body = json.dumps(PAGES[self.path]) if self.path in PAGES else ""
        if self.path == "/metrics":
            body = 'vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 0.0\n'
        self._send(body, "application/json" if self.path in PAGES else "text/plain")

    def do_POST(self) -> None:
        """Stream the requested number of tokens."""
        wanted = json.loads(self.rfile.read(int(self.headers["content-length"])))["max_tokens"]
        if self.dies:
            os._exit(7)
        usages = [{"prompt_tokens": 8, "completion_tokens": count + 1} for count in range(wanted)]
        events = [{"choices": [{"index": 0, "text": " w"}], "usage": usage} for usage in usages]
        stream = "".join(f"data: {event}\n\n" for event in (*map(json.dumps, events), "[DONE]"))
        self._send(stream, "text/event-stream")

    def _send(self, body: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--max-num-seqs", type=int, default=0)
    parser.add_argument("--no-start", type=int, nargs="*", default=[])
    parser.add_argument("--dies-at", type=int, default=-1)
    parser.add_argument("--healed", type=Path)
    options, _ = parser.parse_known_args()
    healed = options.healed is not None and options.healed.exists()
    if options.max_num_seqs in options.no_start and not healed:
        sys.exit(f"ERROR 11-25 01:00:00 [core.py:700] {OUT_OF_MEMORY}")
    Handler.dies = options.max_num_seqs == options.dies_at and not healed
    with contextlib.suppress(KeyboardInterrupt):
        ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
