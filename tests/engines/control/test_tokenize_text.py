"""The server's tokenizer is asked where the server has one, and nothing is posted where it has none."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from servetop.engines.control.control_client import ServerClient
from servetop.engines.control.tokenize_text import tokenize_text


async def ask(get_status: int, answer: Any, *, field: str = "") -> tuple[tuple[int, ...], list[Mapping[str, Any]]]:
    """The ids that a server's answers give, and what was posted to it."""
    posted: list[Mapping[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond(get_status, b"{}")

        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._respond(200, json.dumps(answer).encode())

        def _respond(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        client = ServerClient(f"http://127.0.0.1:{server.server_port}")
        ids = await tokenize_text(client, "the of", model="m", field=field)
        await client.close()
        server.shutdown()
        thread.join()
    return ids, posted


async def test_a_server_with_a_tokenizer_gives_the_ids_of_a_text() -> None:
    ids, posted = await ask(405, {"count": 2, "tokens": [1785, 1307]})
    assert ids == (1785, 1307)
    assert posted == [{"prompt": "the of", "add_special_tokens": False, "model": "m"}]


async def test_an_engine_that_is_known_to_have_one_is_asked_in_its_own_form() -> None:
    """llama.cpp answers 404 to a GET."""
    ids, posted = await ask(404, {"tokens": [5, 6]}, field="content")
    assert (ids, posted) == ((5, 6), [{"content": "the of", "add_special": False, "model": "m"}])


async def test_nothing_is_posted_to_a_server_without_one() -> None:
    assert await ask(404, {"tokens": [5]}) == ((), [])


@pytest.mark.parametrize("answer", [{"tokens": ["a"]}, {"tokens": [-1]}, {"tokens": None}, [5], {"error": "no"}])
async def test_an_answer_of_another_form_gives_no_ids(answer: Any) -> None:
    ids, posted = await ask(405, answer)
    assert (ids, len(posted)) == ((), 1)
