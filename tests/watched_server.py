"""A server that speaks vLLM's pages, counts what a test says, and notes every request that it gets."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.harness import opened

MODELS = json.dumps({"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": "vllm"}]})
PAGE = """\
vllm:num_requests_running {running}
vllm:num_requests_waiting {waiting}
vllm:kv_cache_usage_perc {kv}
vllm:num_preemptions_total 0
vllm:prompt_tokens_total {prompt}
vllm:generation_tokens_total {output}
vllm:request_success_total{{finished_reason="stop"}} {finished}
vllm:time_to_first_token_seconds_sum {ttft}
vllm:time_to_first_token_seconds_count {finished}
vllm:time_to_first_token_seconds_bucket{{le="0.5"}} {finished}
vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {finished}
"""


@dataclass
class WatchedServer:
    """One life of the server, on a thread of its own."""

    counts: dict[str, float] = field(
        default_factory=lambda: {
            "running": 3.0, "waiting": 0.0, "kv": 0.25, "prompt": 1000.0, "output": 500.0, "finished": 10.0,
            "ttft": 2.0,
        }
    )  # fmt: skip
    answers: dict[str, int] = field(default_factory=dict)
    """Answers of its HTTP server by their status, such as `5xx`, which are on the page if there are any."""
    has_metrics: bool = True
    is_ready: bool = True
    """Whether its health page answers with HTTP 200; else with 503, as of a server that drains."""
    page_takes: float = 0.0
    """Seconds that the server works on a metrics page, at least."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request."""
    url: str = ""
    base: str = ""
    """Path before those of all pages, such as `/engine-a`; what does not begin with it is a 404."""
    key: str = ""
    """API key without which all pages are a 401; empty: none is needed."""
    keys: set[str | None] = field(default_factory=set)
    """The values of the `authorization` header of all requests."""
    pages: Mapping[str, str] | None = None
    """Pages in place of vLLM's; None: vLLM's."""

    def serve(self, *, requests: int, tokens: int) -> None:
        """Count requests of other clients, each with 0.2 s to its first token."""
        self.counts["finished"] += requests
        self.counts["ttft"] += 0.2 * requests
        self.counts["output"] += tokens

    def page(self, path: str) -> str | None:
        """Return the page at a path; None without one."""
        if not path.startswith(self.base):
            return None
        path = path.removeprefix(self.base)
        if self.pages is not None:
            return self.pages.get(path)
        pages = {"/v1/models": MODELS, "/health": "", "/version": '{"version": "0.11.0"}'}
        if path == "/metrics" and self.has_metrics:
            return PAGE.format(**self.counts) + "".join(
                f'http_requests_total{{handler="/v1/completions",status="{status}"}} {count}\n'
                for status, count in self.answers.items()
            )
        return pages.get(path)


@contextmanager
def watched_server(
    *,
    port: int = 0,
    has_metrics: bool = True,
    counts: Mapping[str, float] | None = None,
    keeps_alive: bool = False,
    tls: ssl.SSLContext | None = None,
    base: str = "",
    key: str = "",
) -> Iterator[WatchedServer]:
    """A server at a free port, or at the port of an earlier one, that has counted something before.

    With `keeps_alive` connections stay open, and are served even after the server was closed.
    """
    watched = WatchedServer(has_metrics=has_metrics, base=base, key=key)
    watched.counts |= counts or {}
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(watched, keeps_alive=keeps_alive))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    watched.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}{base}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield watched
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(watched: WatchedServer, *, keeps_alive: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if keeps_alive else "HTTP/1.0"

        def do_GET(self) -> None:
            watched.seen.append(("GET", self.path))
            watched.keys.add(self.headers["authorization"])
            if self.path == f"{watched.base}/metrics":
                threading.Event().wait(watched.page_takes)
            page = watched.page(self.path)
            body = (page or "").encode()
            if watched.key and self.headers["authorization"] != f"Bearer {watched.key}":
                self.send_response(401)
                body = b""
            elif self.path == f"{watched.base}/health" and not watched.is_ready:
                self.send_response(503)
            else:
                self.send_response(404 if page is None else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _refuse(self) -> None:
            watched.seen.append((self.command, self.path))
            self.send_error(405)

        do_POST = do_PUT = do_DELETE = do_HEAD = _refuse

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def watching(recording: Path) -> bool:
    """Whether a watch has recorded a metrics page."""
    reader = opened(recording)
    if reader is None:
        return False
    with contextlib.closing(reader):
        return any(tick.engine is not None for tick in reader.ticks())
