"""A small server that behaves as engines do, correctly or not; run as a script with vLLM's options.

It responds like vLLM 0.32 from tests/engines/data/vllm, after printing what vLLM prints while it loads.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DATA = Path(__file__).parent / "data" / "vllm"
PAGES = {
    "/health": b"",
    "/version": (DATA / "version.json").read_bytes(),
    "/v1/models": (DATA / "v1_models.json").read_bytes(),
    "/metrics": (DATA / "metrics_0.32.0.txt").read_bytes(),
}
NONSENSE = re.sub(rb"(vllm:num_requests_running.*\}) .*", rb"\1 1e308", PAGES["/metrics"])
CHILD = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{more}\nsignal.pause()"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


def main() -> int:
    options = parse()
    workers: list[subprocess.Popen[bytes]] = []
    try:
        return serve(options, workers)
    except KeyboardInterrupt:
        say("Shutting down")
        return 0
    finally:
        for worker in workers:
            worker.terminate()


def serve(options: argparse.Namespace, workers: list[subprocess.Popen[bytes]]) -> int:
    if options.stubborn:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for _ in range(options.children):
        workers.append(child(new_session=False, stubborn=options.stubborn))
    if options.runaway_child:
        child(new_session=True, stubborn=True)
    if options.fail_like:
        sys.stderr.write((DATA / options.fail_like).read_text())
        return 1
    if options.flood:
        threading.Thread(target=flood, daemon=True).start()
    say(f"api key is {os.environ.get('VLLM_API_KEY')}")
    say("\x1b[32mloading\x1b[0m weights\rloading weights 100%")
    if options.never_ready:
        signal.pause()
    Handler.nonsense_from = options.nonsense_from
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    say("Application startup complete.")
    server.serve_forever(poll_interval=0.05)
    return 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--host", "--max-num-seqs", "--fail-like", "--api-key"):
        parser.add_argument(name)
    for name in ("--stubborn", "--flood", "--never-ready", "--runaway-child"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--port", type=int)
    parser.add_argument("--children", type=int, default=0)
    parser.add_argument("--nonsense-from", type=int, default=0, help="the metrics page that first counts 1e308")
    return parser.parse_args()


def child(*, new_session: bool, stubborn: bool) -> subprocess.Popen[bytes]:
    code = CHILD.format(more=STUBBORN if stubborn else "")
    started = subprocess.Popen([sys.executable, "-c", code], start_new_session=new_session)
    say(f"child {started.pid}")
    return started


def flood() -> None:
    block = b"".join(
        b"INFO step %06d of a very talkative engine that says nothing new at all\n" % each for each in range(1000)
    )
    while True:
        os.write(1, block)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    nonsense_from = 0
    pages = 0

    def do_GET(self) -> None:
        body = PAGES.get(self.path)
        if body is not None and self.path == "/metrics" and self.nonsense_from:
            Handler.pages += 1
            body = NONSENSE if Handler.pages >= self.nonsense_from else body
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        say(f'INFO:     127.0.0.1:1 - "{self.requestline}" 200 OK')


if __name__ == "__main__":
    sys.exit(main())
