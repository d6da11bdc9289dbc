"""The whole command with a server that sends escape sequences prints harmless text."""

from __future__ import annotations

import json
import unicodedata

import pytest

from servetop.cli.main import main
from tests.cli.bad_server import BadServer
from tests.harness import Servetop

pytestmark = pytest.mark.integration

HOSTILE = "\x1b]0;owned\x07\x1b]52;c;cm0=\x1b\\\x1b[2J\x9b31m\u202egnp\r\nservetop: all is well"
REFUSED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def test_error_bodies_and_model_ids_cannot_control_the_terminal(servetop: Servetop, bad_server: BadServer) -> None:
    bad_server.models = (200, _json({"object": "list", "data": [{"id": f"m{HOSTILE}", "object": "model"}]}))
    bad_server.completions = (500, _json({"error": {"message": f"broken {HOSTILE}"}}))
    load = ("--request-rate", "20", "--num-prompts", "4", "--label", f"l{HOSTILE}")
    done = servetop("--url", bad_server.url, "--headless", *load)
    again = servetop("summary")
    assert done.code == 1
    assert "broken gnp servetop: all is well" in done.complaint
    assert "mgnp servetop: all is well" in again.out
    for text in (done.out, done.err, again.out, again.err):
        assert [each for each in text if unicodedata.category(each) in REFUSED and each != "\n"] == []
        assert [line for line in text.splitlines() if line.startswith("servetop: all")] == []


def test_an_argument_that_is_not_utf_8_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--label", "caf\udce9"]) == 2
    assert capsys.readouterr().err.startswith("servetop: 'caf\\udce9' is not UTF-8: rename the file")


def test_a_model_id_that_is_not_unicode_does_not_end_the_run(servetop: Servetop, bad_server: BadServer) -> None:
    bad_server.models = (200, rb'{"object": "list", "data": [{"id": "\ud83dx", "object": "model"}]}')
    done = servetop("--url", bad_server.url, "--headless", "--json", "--request-rate", "20", "--num-prompts", "4")
    assert (done.summary["completed"], done.summary["model_id"]) == (4, "?x"), done.err
