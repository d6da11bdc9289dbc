"""A server with configurable faults."""

from __future__ import annotations

from http.server import ThreadingHTTPServer

from tests.cli.mortal_server import MODELS, TOKEN, QuietHandler


class BadServer(ThreadingHTTPServer):
    """OpenAI-compatible but for what a test sets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.models: tuple[int, bytes] = (200, MODELS)
        self.completions: tuple[int, bytes] = (200, TOKEN * 2 + b"data: [DONE]\n\n")
        self.cut = False
        """Break the connection off after the body, before the end of the chunked stream."""
        self.echo = ""
        """Refuse each request, with the value of its header of this name."""
        self.seen: list[str | None] = []
        """Values of that header, as they came."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(QuietHandler):
    server: BadServer

    def do_GET(self) -> None:
        answers = {"/v1/models": self.server.models, "/health": (200, b"")}
        self.reply(*answers.get(self.path, (404, b"{}")))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.server.echo:
            value = self.headers.get(self.server.echo)
            self.server.seen.append(value)
            self.reply(403, f"no such tenant: {value}".encode())
            return
        status, body = self.server.completions
        if status != 200:
            self.reply(status, body)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
        if self.server.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
