"""Ends the page server of a run, a viewer, the page or the run: no process, port or file remains."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.case import Case, Fault, Result
from tests.chaos.invariants import Harm, check_recording, check_words
from tests.chaos.ledger import What
from tests.chaos.place import PATIENCE, Place
from tests.chaos.processes import marked, until
from tests.reserved_port import reserved_port

BLOWS = ("kill server", "kill server", "kill run", "kill viewer", "leave page", "SIGTERM", "SIGINT", "SIGHUP")
RUN, VIEWER = "servetop.run.run_process", " replay "
HEADERS = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: c2VydmV0b3AtY2hhb3MhIQ==",
)
"""Of a request for a WebSocket."""


def pages(case: Case, folder: Path) -> Result:
    """A run with pages, of which one or two are open; one blow."""
    chance = case.chance()
    place, result = Place(case, folder), Result()
    blow, count = chance.choice(BLOWS), chance.randint(1, 2)
    result.note(f"{blow}, {count} open")
    words = ["--duration", "300", "--request-rate", "10", "--input-len", "6", "--output-len", "5"]
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(reserved_port())
        words += ["--web", "--web-port", str(port), "--record", str(place.recording)]
        server = place.start([*words, "--url", stack.enter_context(place.server())])
        until(lambda: _token(place) or server.poll() is not None, seconds=PATIENCE)
        token = _token(place)
        until(lambda: place.ledger.count(What.RECEIVED) > 0 or server.poll() is not None, seconds=PATIENCE)
        if token is None or server.poll() is not None:
            result.found(Fault.LOST, f"there was no page: {place.printed('err')[-500:]}")
            place.finish(server, result)
            return result
        open_pages = [stack.enter_context(_page(port, token)) for _ in range(count)]
        until(lambda: len(_pids(place, VIEWER)) == count or server.poll() is not None, seconds=PATIENCE)
        time.sleep(chance.uniform(0.0, 1.5))
        _strike(blow, place, server, open_pages[0])
        if blow in ("kill viewer", "leave page"):
            _check_survives(blow, count, place, server, result)
        ended = place.finish(server, result)
    check_words(ended, result, signalled=True)
    check_recording(place, ended, result, harm=Harm.ENDED)
    if blow != "kill run" and "recordings without an end" in result.notes:
        result.found(Fault.LOST, f"“{blow}” left a recording without an end")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                result.found(Fault.LEFTOVER, f"port {port} is still open")
    if blow not in ("kill server", "kill run") and (left := place.left_behind()):
        result.found(Fault.LEFTOVER, f"files: {left}")
    return result


def _token(place: Place) -> str | None:
    found = re.search(r"\?token=([\w-]+)", place.printed("err") + place.printed("out"))
    return found[1] if found else None


@contextlib.contextmanager
def _page(port: int, token: str) -> Iterator[socket.socket]:
    """An open page: what its viewer draws is not read beyond what the socket holds."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as page:
        lines = (f"GET /ws?token={token} HTTP/1.1", f"Host: 127.0.0.1:{port}", *HEADERS, "", "")
        page.sendall("\r\n".join(lines).encode())
        answer = page.recv(100)
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        yield page


def _pids(place: Place, words: str) -> list[int]:
    return [pid for pid, command in marked(place.mark).items() if words in f"{command} "]


def _strike(blow: str, place: Place, server: subprocess.Popen[bytes], page: socket.socket) -> None:
    match blow:
        case "kill server":
            server.kill()
        case "kill run":
            for pid in _pids(place, RUN):
                place.send(pid, signal.SIGKILL)
            time.sleep(1.0)
            server.send_signal(signal.SIGTERM)
        case "kill viewer":
            for pid in _pids(place, VIEWER)[:1]:
                place.send(pid, signal.SIGKILL)
        case "leave page":
            page.close()
        case name:
            server.send_signal(signal.Signals[name])


def _check_survives(blow: str, count: int, place: Place, server: subprocess.Popen[bytes], result: Result) -> None:
    """Exactly one viewer fewer remains; then the server is stopped."""
    if not until(lambda: len(_pids(place, VIEWER)) == count - 1, seconds=PATIENCE):
        result.found(Fault.LEFTOVER, f"{len(_pids(place, VIEWER))} viewers of {count} after “{blow}”")
    received = place.ledger.count(What.RECEIVED)
    if not until(lambda: place.ledger.count(What.RECEIVED) > received, seconds=PATIENCE) or server.poll() is not None:
        result.found(Fault.LOST, f"the run did not go on after “{blow}”")
    server.send_signal(signal.SIGTERM)
