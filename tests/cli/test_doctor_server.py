"""`servetop doctor URL`: what is printed, without secrets, and the exit codes."""

from __future__ import annotations

import io
import json
import shlex

import pytest

from servetop.cli.doctor.doctor_server import report_data, run_command, run_server_doctor
from servetop.cli.doctor.doctor_server_text import report_parts
from servetop.cli.options.declaration import Given
from servetop.cli.tables import SanitizingConsole
from servetop.core.errors import EngineError, UsageError
from servetop.run.server_check.server_report import (
    EndpointCheck,
    MetricsCheck,
    PanelMetrics,
    ReadEvent,
    ServerReport,
)
from tests.harness import RAN, Servetop
from tests.odd_server import NOT_FOUND, Asked, Reply, completed, odd_server, refused

SECRET = "correct-horse-battery"
HEADERS = ("host", "content-type", "accept", "user-agent", "x-request-id", "content-length")
EVENTS = tuple(ReadEvent(at=0.02 + 0.01 * number, text=f" word{number}", tokens=1) for number in range(9))
REPORT = ServerReport(
    servetop="1.2.3",
    url="http://gpu7:8000",
    engine="openai",
    title="OpenAI-compatible server",
    model="tiny",
    endpoints=(
        EndpointCheck(
            endpoint="completions",
            prompt="token ids",
            url="http://gpu7:8000/v1/completions",
            sent={"model": "tiny", "prompt": [1000, 1001], "max_tokens": 8},
            header_names=HEADERS,
            answered=False,
            status="error",
            error="HTTP 404: Not \x1b[31mfound",
            http_status=404,
            media_type="application/json",
            body='{"error":\n "Not \x1b[31mfound"}',
        ),
        EndpointCheck(
            endpoint="chat",
            prompt="text",
            url="http://gpu7:8000/v1/chat/completions",
            changes=("without ignore_eos",),
            refusals=("HTTP 400: Unknown parameter: 'ignore_eos'.",),
            sent={"model": "tiny", "messages": [{"role": "user", "content": "Count."}], "max_tokens": 8},
            header_names=HEADERS,
            answered=True,
            status="ok",
            http_status=200,
            media_type="text/event-stream",
            streamed=True,
            prompt_tokens=5,
            output_tokens=9,
            token_source="usage",
            first_token_seconds=0.02,
            total_seconds=0.11,
            events=(*EVENTS, ReadEvent(at=0.11, output_tokens=9), ReadEvent(at=0.11, final=True)),
        ),
    ),
    metrics=MetricsCheck(
        page="http://gpu7:8000/metrics",
        panels=(
            PanelMetrics(panel="queue", found=("running", "waiting")),
            PanelMetrics(panel="prefix cache", found=("hits",), missing=("queries",)),
            PanelMetrics(panel="preemptions", missing=("preemptions_total",)),
        ),
    ),
    remarks=("the server counts no tokens",),
    options=("--endpoint", "chat"),
)
GOLDEN = """
completions with token ids: POST http://gpu7:8000/v1/completions
    sent  {"model": "tiny", "prompt": [1000, 1001], "max_tokens": 8}
 headers  host, content-type, accept, user-agent, x-request-id, content-length
received  HTTP 404, application/json
 read as  error: HTTP 404: Not found
    body  {"error": "Not found"}

chat: POST http://gpu7:8000/v1/chat/completions
    sent  {"model": "tiny", "messages": [{"role": "user", "content": "Count."}],
          "max_tokens": 8}
 headers  host, content-type, accept, user-agent, x-request-id, content-length
 refused  HTTP 400: Unknown parameter: 'ignore_eos'. → sent without ignore_eos
received  HTTP 200, text/event-stream, 5 prompt and 9 output tokens, counted by
          the server
 20.0 ms  " word0", 1 token
 30.0 ms  " word1", 1 token
 40.0 ms  " word2", 1 token
 50.0 ms  " word3", 1 token
          … 4 more
  100 ms  " word8", 1 token
  110 ms  server's count 9
  110 ms  end of the stream

Server http://gpu7:8000
✓ works: OpenAI-compatible server, model tiny

  endpoint     prompt     result  tokens    first   total  note
  ────────────────────────────────────────────────────────────────────────────
  completions  token ids  absent                           HTTP 404: Not found
  chat         text       ok           9  20.0 ms  110 ms  without ignore_eos

  metrics  http://gpu7:8000/metrics
    found  queue
   partly  prefix cache (no queries)
   absent  preemptions
     note  the server counts no tokens
"""


def rendered(report: ServerReport, *, width: int) -> str:
    page = io.StringIO()
    target = SanitizingConsole(file=page, width=width, highlight=False)
    for part in report_parts(report_data(report, command=run_command(report.url, {}, report.options))):
        target.print(part)
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def chat_only(asked: Asked) -> Reply:
    return completed(asked) if "chat" in asked.path else NOT_FOUND


def test_the_report_of_a_server_at_80_columns() -> None:
    assert rendered(REPORT, width=80) == GOLDEN


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, rendered(REPORT, width=width).splitlines())) <= width


def test_the_command_has_what_was_given_and_what_is_needed() -> None:
    given: dict[str, Given] = {
        "header_env": ("X-Key=KEY",),
        "model": "tiny",
        "insecure": True,
        "extra_body": '{"a": 1}',
    }
    command = run_command("http://gpu7", given, ("--endpoint", "chat", "--extra-body", '{"a": 1, "b": null}'))
    assert shlex.join(command) == (
        "servetop --url http://gpu7 --model tiny --insecure --header-env X-Key=KEY --endpoint chat "
        '--extra-body \'{"a": 1, "b": null}\''
    )


def test_a_server_that_answers_is_reported_with_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    with odd_server(chat_only) as server:
        assert run_server_doctor(server.url, {}, as_json=False) == 0
    out = capsys.readouterr().out
    assert "✓ works: OpenAI-compatible server, model odd-model" in out
    assert out.splitlines()[-1] == f"  servetop --url {server.url} --endpoint chat"


def test_a_server_that_answers_nothing_is_reported_with_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    with odd_server(lambda _: refused("overloaded", 503)) as server:
        assert run_server_doctor(server.url, {}, as_json=False) == 3
    out = capsys.readouterr().out
    assert "✗ does not answer: no endpoint completed a request" in out
    assert "HTTP 503: overloaded" in out
    assert "Run it" not in out


def test_the_report_as_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    with odd_server(chat_only) as server:
        assert run_server_doctor(server.url, {"model": "odd-model"}, as_json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["answered"]
    assert report["command"] == ["servetop", "--url", server.url, "--model", "odd-model", "--endpoint", "chat"]
    chat = next(each for each in report["endpoints"] if each["endpoint"] == "chat")
    assert chat["sent"]["max_tokens"] == 8
    assert len(chat["events"]) == 7
    assert chat["body"].endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_secrets_are_never_printed_even_if_the_server_repeats_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    def echo(asked: Asked) -> Reply:
        words = f"{asked.headers['authorization']} {asked.headers['x-team']} {asked.headers['x-key']}"
        return refused(f"{'x' * 3900} no such key: {words}") if "chat" in asked.path else refused(words)

    monkeypatch.setenv("ODD_KEY", f"{SECRET}-1")
    monkeypatch.setenv("ODD_HEADER", f"{SECRET}-2")
    given = {"api_key_env": "ODD_KEY", "header": (f"X-Team: {SECRET}-3",), "header_env": ("X-Key=ODD_HEADER",)}
    with odd_server(echo) as server:
        assert run_server_doctor(server.url, given, as_json=as_json) == 3
        assert {each.headers["authorization"] for each in server.asked} == {f"Bearer {SECRET}-1"}
    out, err = capsys.readouterr()
    assert SECRET[:12] not in out + err
    assert "[redacted]" in out
    assert "authorization" in out


def test_an_unreachable_server_is_an_engine_error() -> None:
    with pytest.raises(EngineError, match="nothing answers at"):
        run_server_doctor("http://127.0.0.1:1", {}, as_json=False)


@pytest.mark.parametrize(
    ("url", "given"),
    [("http://[", {}), ("http://127.0.0.1:1", {"endpoint": "talk"}), ("http://127.0.0.1:1", {"extra_body": "["})],
)
def test_invalid_options_are_usage_errors(url: str, given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        run_server_doctor(url, given, as_json=False)


@pytest.mark.integration
def test_the_command_that_it_proposes_runs(servetop: Servetop) -> None:
    def picky(asked: Asked) -> Reply:
        refusal = refused("unknown field", param="ignore_eos")
        return refusal if "ignore_eos" in asked.body else chat_only(asked)

    with odd_server(picky) as server:
        found = servetop("doctor", server.url, "--json")
        assert found.code == 0, found.err
        server.asked.clear()
        command = json.loads(found.out)["command"][1:]
        done = servetop(*command, "--num-prompts", "3", "--request-rate", "inf", "--output-len", "5", "--headless")
        assert done.code in RAN, done.err
        assert server.paths == 3 * ["/v1/chat/completions"]


@pytest.mark.integration
def test_options_for_a_server_need_its_address(servetop: Servetop) -> None:
    done = servetop("doctor", "--model", "tiny")
    assert (done.code, done.complaint) == (
        2, "these options are for a server: add its URL, as in servetop doctor http://gpu7:8000"
    )  # fmt: skip
