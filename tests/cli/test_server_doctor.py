"""`servetop doctor URL`: what it prints of a server, and what it never prints."""

from __future__ import annotations

import json
import threading

import pytest

from servetop.cli.main import main
from servetop.core.errors import ExitCode
from tests.odd_server import NOT_FOUND, Asked, Reply, completed, odd_server, refused

KEY = "sk-0123456789-secret"


def chat_only(asked: Asked) -> Reply:
    if "chat" not in asked.path:
        return NOT_FOUND
    if "ignore_eos" in asked.body:
        return refused(f"\x1b[31munknown field ignore_eos of {asked.headers.get('authorization')}", param="ignore_eos")
    return completed(asked)


def test_the_report_of_a_server_that_only_chats(capsys: pytest.CaptureFixture[str]) -> None:
    with odd_server(chat_only) as server:
        assert main(["doctor", server.url]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[-1].strip() == "OpenAI-compatible server · model odd-model"
    assert lines[1].startswith("note  requests     requests go to /v1/chat/completions without ignore_eos: ")
    assert [line[:19] for line in lines if line[:4] in ("ok  ", "FAIL")] == [
        "ok    chat         ", "FAIL  completions  ", "FAIL  responses    ",
    ]  # fmt: skip
    answer = next(line for line in lines if line.startswith("ok    chat"))
    assert "5 tokens, counted by the server · TTFT " in answer
    assert any("sent      POST /v1/chat/completions {" in line for line in lines)
    assert "received  HTTP 200, 7 events read" in "\n".join(lines)
    assert any(line.endswith("  text ' word4' · finish reason") for line in lines)
    assert lines[-2:] == [
        "answers over 1 of 3 endpoints; measure it with",
        f"    servetop --url {server.url}",
    ]


def test_neither_the_key_nor_control_characters_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_VAR", KEY)
    for more in ([], ["--json"]):
        with odd_server(chat_only) as server:
            server.key = KEY
            argv = ["doctor", server.url, "--api-key-env", "MY_VAR", "--header-env", "X-Team=MY_VAR", *more]
            assert main(argv) == ExitCode.OK
        out, err = capsys.readouterr()
        assert KEY not in out + err
        assert "\x1b" not in out
        assert "authorization" in out
        assert "x-team" in out
        assert "--api-key-env MY_VAR --header-env X-Team=MY_VAR" in out


def test_the_json_has_each_event_as_it_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    with odd_server(completed) as server:
        assert main(["doctor", server.url, "--endpoint", "chat", "--json"]) == ExitCode.OK
    (answer,) = json.loads(capsys.readouterr().out)["endpoints"]
    assert (answer["endpoint"], answer["answered"], answer["http_status"]) == ("chat", True, 200)
    assert (answer["output_tokens"], answer["token_source"]) == (5, "usage")
    assert "".join(event.get("text", "") for event in answer["events"]) == " word0 word1 word2 word3 word4"
    assert json.loads(answer["body"])["messages"][0]["content"] == "Count from one to ten."
    assert all(event["at"] >= 0 for event in answer["events"])


def test_a_server_that_answers_nothing_fails_with_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    with odd_server(lambda _: refused("out of\ncredit", 402)) as server:
        assert main(["doctor", server.url]) == ExitCode.ENGINE_FAILED
    out = capsys.readouterr().out
    assert "FAIL  completions  HTTP 402: out of credit" in out
    assert out.splitlines()[-1] == "answers over no endpoint: see the errors above"


def test_an_endpoint_that_hangs_costs_its_time_limit(capsys: pytest.CaptureFixture[str]) -> None:
    release = threading.Event()

    def hangs(asked: Asked) -> Reply:
        release.wait(60)
        return completed(asked)

    with odd_server(hangs) as server:
        code = main(["doctor", server.url, "--endpoint", "completions", "--attach-timeout", "4"])
        release.set()
    assert code == ExitCode.ENGINE_FAILED
    assert "FAIL  completions  no complete response within 4 s" in capsys.readouterr().out


def test_the_command_names_an_endpoint_that_answers_if_the_usual_one_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with odd_server(lambda asked: completed(asked) if "chat" in asked.path else refused("not paid", 402)) as server:
        assert main(["doctor", server.url, "--attach-timeout", "25"]) == ExitCode.OK
    assert capsys.readouterr().out.endswith(f"    servetop --url {server.url} --attach-timeout 25 --endpoint chat\n")


def test_options_for_a_server_need_its_url(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", "m"]) == ExitCode.USAGE
    assert "--model is for a server: give its URL" in capsys.readouterr().err
    assert main(["doctor", "--proxy", "http://p:1"]) == ExitCode.USAGE
    assert "--proxy is for a server" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "http://127.0.0.1:1"]) == ExitCode.ENGINE_FAILED
    assert capsys.readouterr().err.startswith("servetop: nothing answers at http://127.0.0.1:1")
