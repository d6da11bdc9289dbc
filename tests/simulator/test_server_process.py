"""The simulator's server as a command: clean exits, and errors in one line."""

from __future__ import annotations

import signal
import socket

import httpx
import pytest

from tests.simulator.server_process import serve, start, stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_cleanly_even_during_streams(number: int) -> None:
    process, url = start("--model", "opt-125m")
    body = {"prompt": "x", "max_tokens": 2000, "ignore_eos": True, "stream": True}
    with httpx.Client(base_url=url) as client, client.stream("POST", "/v1/completions", json=body) as reply:
        chunks = reply.iter_raw()
        next(chunks)
        assert stop(process, number) == 0


def test_a_port_in_use_is_reported_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert serve("--port", str(taken.getsockname()[1]), "--model", "opt-125m") == 1
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("servetop:")]
    assert "is in use" in line


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--model", "llama-2-7"], "did you mean 'llama-2-7b'?"),
        (["--gpu", "a100"], "no gpu profile 'a100': did you mean"),
        (["--policy", "recompete"], "did you mean 'recompute'?"),
        (
            ["--model", "llama-2-70b"],
            "Llama-2-70b in fp16 needs 138 GB for weights; A100-40GB has 39.4 GiB: try tensor_parallel=4",
        ),
        (["--tensor-parallel", "3"], "does not divide the 32 heads"),
        (["--max-model-len", "9000"], "above the 4096"),
    ],
)
def test_an_impossible_simulation_is_reported_in_one_line(
    options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(*options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line


def test_several_names_follow_one_option() -> None:
    process, url = start("--model", "opt-125m", "--lora-modules", "a", "b=/path")
    assert [each["id"] for each in httpx.get(f"{url}/v1/models").json()["data"]] == ["opt-125m", "a", "b"]
    assert stop(process) == 0


@pytest.mark.parametrize("options", [["--port", "x"], ["--max-num-seqs", "0"], ["--time-scale", "-1"], ["--nope"]])
def test_a_bad_option_exits_with_2(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(*options) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("dialect", ["vllm", "tgi", "llama.cpp"])
def test_a_server_with_a_key_serves_only_requests_that_carry_it(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_THE_SERVER", "sk-1234")
    process, url = start("--model", "opt-125m", "--dialect", dialect, "--api-key-env", "KEY_OF_THE_SERVER")
    body = {"model": "opt-125m", "prompt": "x", "max_tokens": 2}
    with httpx.Client(base_url=url) as client:
        statuses = {
            given: client.post("/v1/completions", json=body, headers={"Authorization": given} if given else {})
            for given in ("", "sk-1234", "Bearer sk-123", "Bearer sk-12345", "Bearer sk-1234")
        }
        assert [each.status_code for each in statuses.values()] == [401, 401, 401, 401, 200]
        assert "sk-1234" not in statuses["Bearer sk-12345"].text
        assert client.get("/v1/models").status_code == 401
        assert client.get("/health").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert stop(process) == 0


def test_a_key_on_the_command_line_is_refused_without_repeating_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve("--api-key", "sk-1234") == 2
    text = capsys.readouterr().err
    assert "--api-key-env" in text
    assert "sk-1234" not in text


@pytest.mark.parametrize("value", [None, " ", "kéy"])
def test_a_key_that_is_not_in_its_variable_is_an_error_in_one_line(
    value: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KEY_OF_THE_SERVER", raising=False)
    if value is not None:
        monkeypatch.setenv("KEY_OF_THE_SERVER", value)
    assert serve("--model", "opt-125m", "--api-key-env", "KEY_OF_THE_SERVER") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "KEY_OF_THE_SERVER (--api-key-env) holds no API key" in line
    assert "kéy" not in line
