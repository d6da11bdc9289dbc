"""A server is checked over every endpoint, with what a load would send, in bounded time."""

from __future__ import annotations

import json

import pytest

from servetop.core.config import EngineConfig, RunConfig, WorkloadConfig
from servetop.core.errors import EngineError
from servetop.run.server_check.check_server import check_server
from servetop.run.server_check.server_report import EndpointCheck, ServerReport
from tests.odd_server import EVENTS, JSON, NOT_FOUND, Asked, OddServer, Reply, Rule, completed, odd_server, refused
from tests.simulator import server_process

HEAD_ONLY = b'data: {"choices":[{"index":0,"text":" a"}]}\n\n'


def config_for(url: str, *, endpoint: str = "", timeout: float = 30.0, **workload: object) -> RunConfig:
    engine = EngineConfig(name="auto", model="", url=url, attach_timeout=timeout)
    return RunConfig(engine=engine, workload=WorkloadConfig(endpoint=endpoint, **workload))  # type: ignore[arg-type]


async def checked(rule: Rule, *, path: str = "", endpoint: str = "") -> tuple[ServerReport, OddServer]:
    with odd_server(rule) as server:
        if path:
            server.pages = {f"{path}/v1/models": server.pages["/v1/models"]}
        return await check_server(config_for(server.url + path, endpoint=endpoint)), server


def answered(report: ServerReport) -> list[str]:
    return [f"{each.endpoint}, {each.prompt}" for each in report.endpoints if each.answered]


def one(report: ServerReport, endpoint: str) -> EndpointCheck:
    return next(each for each in report.endpoints if each.endpoint == endpoint)


def chat_only(asked: Asked) -> Reply:
    if "chat" not in asked.path:
        return NOT_FOUND
    return refused("unknown field", param="ignore_eos") if "ignore_eos" in asked.body else completed(asked)


async def test_every_endpoint_is_asked_and_read_as_a_load_reads_it() -> None:
    report, server = await checked(completed)
    assert answered(report) == ["completions, token ids", "completions, text", "chat, text"]
    assert (one(report, "responses").error or "").startswith(
        "the response ended without a token; it starts with 'data:"
    )
    assert server.paths == 2 * ["/v1/completions"] + ["/v1/chat/completions", "/v1/responses"]
    chat = one(report, "chat")
    assert (chat.http_status, chat.media_type, chat.token_source, chat.streamed) == (200, EVENTS, "usage", True)
    assert (chat.prompt_tokens, chat.output_tokens) == (8, 5)
    assert [event.text for event in chat.events if event.tokens] == [f" word{number}" for number in range(5)]
    assert chat.events[-1].final
    assert chat.sent["messages"] == [{"role": "user", "content": "Count from one to ten."}]
    assert chat.body.startswith("data: {")
    assert (report.options, report.remarks) == ((), ())


async def test_a_server_that_only_chats_gets_the_options_for_it() -> None:
    report, _ = await checked(chat_only)
    assert answered(report) == ["chat, text"]
    assert one(report, "chat").changes == ("without ignore_eos",)
    assert one(report, "chat").refusals == ("HTTP 400: unknown field",)
    assert one(report, "completions").error == "HTTP 404: Not found"
    assert report.options == ("--endpoint", "chat", "--extra-body", '{"ignore_eos": null}')


async def test_a_server_that_does_not_stream() -> None:
    def rule(asked: Asked) -> Reply:
        return refused("stream must be false") if asked.body["stream"] else completed(asked)

    report, _ = await checked(rule)
    assert one(report, "completions").changes == ("without a stream",)
    assert report.options == ("--no-stream",)
    assert report.remarks == (
        "responses arrive in one piece: TTFT is the time of the whole response, and there is no ITL",
    )


async def test_an_answer_in_one_piece_to_a_request_for_a_stream_is_named() -> None:
    report, _ = await checked(lambda asked: completed(Asked(asked.path, {**asked.body, "stream": False}, {})))
    assert "responses arrive in one piece" in report.remarks[0]
    assert report.options == ()


async def test_tokens_that_the_server_does_not_count_are_named() -> None:
    report, _ = await checked(lambda asked: completed(asked, usage=False))
    assert report.remarks == ("the server counts no tokens: output tokens are its events, prompt tokens are estimated",)


async def test_errors_in_an_envelope_of_status_200_are_failures() -> None:
    error = json.dumps({"error": {"message": "the model is being loaded"}}).encode()
    report, _ = await checked(lambda _: Reply(200, error, JSON))
    assert not report.answered
    check = report.endpoints[0]
    assert check.error == "HTTP 200, but no event stream: the model is being loaded"
    assert check.body == error.decode()


async def test_a_base_path_is_part_of_every_address() -> None:
    report, server = await checked(chat_only, path="/gateway/7")
    assert "/gateway/7/v1/chat/completions" in server.paths
    assert one(report, "chat").url == f"{server.url}/gateway/7/v1/chat/completions"


async def test_only_a_given_endpoint_is_asked() -> None:
    report, server = await checked(completed, endpoint="chat")
    assert (answered(report), server.paths) == (["chat, text"], ["/v1/chat/completions"])
    assert report.options == ()


async def test_a_server_that_refuses_the_key_for_its_list_is_an_error() -> None:
    with odd_server() as server:
        server.key = "sk-right"
        with pytest.raises(EngineError, match=r"requires authentication .*--api-key-env"):
            await check_server(config_for(server.url))


async def test_a_server_that_refuses_requests_has_no_options() -> None:
    report, server = await checked(lambda _: refused("no such key", 401))
    assert (report.answered, report.options) == (False, ())
    assert len(server.asked) == 4
    assert {each.error for each in report.endpoints} == {"HTTP 401: no such key"}


async def test_a_server_that_hangs_takes_a_bounded_time() -> None:
    with odd_server(lambda _: Reply(200, HEAD_ONLY, EVENTS, hangs=True)) as server:
        report = await check_server(config_for(server.url, endpoint="completions", timeout=4.0))
    assert not report.answered
    assert sum(each.total_seconds or 0 for each in report.endpoints) < 60
    assert {each.status for each in report.endpoints} == {"timeout"}
    assert report.endpoints[0].events[0].text == " a"


async def test_metrics_are_sorted_by_the_panels_that_need_them() -> None:
    process, url = server_process.start("--dialect", "tgi")
    try:
        report = await check_server(config_for(url))
    finally:
        server_process.stop(process)
    assert (report.engine, answered(report)) == ("tgi", ["completions, text", "chat, text", "generate, text"])
    assert report.metrics.page == f"{url}/metrics"
    panels = {each.panel: each for each in report.metrics.panels}
    assert panels["queue"].missing == ()
    assert panels["preemptions"].found == ()
    assert panels["TTFT by phase"].missing == ("prefill_seconds_total",)
    assert report.options == ()


async def test_a_server_without_metrics_says_so() -> None:
    report, _ = await checked(completed)
    assert report.metrics.panels == ()
    assert "--metrics-url" in report.metrics.trouble
