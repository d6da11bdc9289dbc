"""How servers of unknown engine want their requests is found out with a few of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from servetop.core.config import WorkloadConfig
from servetop.run.attached.find_format import MOST_REQUESTS, find_format
from servetop.run.attached.request_format import RequestFormat
from servetop.run.attached.single_request import RequestTarget
from tests.odd_server import EVENTS, NOT_FOUND, Asked, Reply, Rule, completed, odd_server, refused

USUAL = RequestFormat()
UNMARSHAL = "json: cannot unmarshal array into Go struct field CompletionRequest.prompt of type string"
NEW_LIMIT = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


async def found(rule: Rule, **workload: Any) -> tuple[RequestFormat, str, list[Asked]]:
    with odd_server(rule) as server:
        target = RequestTarget(url=server.url, model="odd-model")
        chosen, remark = await find_format(target, WorkloadConfig(endpoint="", **workload), timeout=30)
        return chosen, remark, server.asked


def chat_only(asked: Asked) -> Reply:
    return completed(asked) if "chat" in asked.path else NOT_FOUND


def text_only(asked: Asked) -> Reply:
    return refused(UNMARSHAL) if isinstance(asked.body.get("prompt"), list) else completed(asked)


def without(*fields: str) -> Rule:
    """A server that rejects these fields, as FastAPI does."""

    def rule(asked: Asked) -> Reply:
        wrong = next((name for name in fields if name in asked.body), None)
        if wrong is None:
            return completed(asked)
        detail = {"type": "extra_forbidden", "loc": ["body", wrong], "msg": "Extra inputs are not permitted"}
        return Reply(422, json.dumps({"detail": [{**detail, "input": asked.body}]}).encode())

    return rule


async def test_a_server_that_accepts_everything_gets_one_request_and_no_remark() -> None:
    chosen, remark, asked = await found(completed)
    assert (chosen, remark) == (USUAL, "")
    assert [each.path for each in asked] == ["/v1/completions"]
    assert all(isinstance(each, int) for each in asked[0].body["prompt"])


async def test_a_server_that_only_chats_is_asked_for_chats() -> None:
    chosen, remark, asked = await found(chat_only)
    assert chosen == RequestFormat("chat")
    assert remark == ("requests go to /v1/chat/completions: /v1/completions with token ids: HTTP 404: Not found")
    assert [each.path for each in asked] == ["/v1/completions", "/v1/chat/completions"]


async def test_a_server_without_token_ids_gets_text() -> None:
    chosen, remark, asked = await found(text_only)
    assert chosen == RequestFormat(as_text=True)
    assert remark.startswith("requests go to /v1/completions as text of estimated length: ")
    assert "with token ids: HTTP 400: json: cannot unmarshal array" in remark
    assert isinstance(asked[-1].body["prompt"], str)


async def test_prompts_that_are_text_anyway_are_tried_as_text_only() -> None:
    chosen, remark, asked = await found(text_only, num_turns="3")
    assert (chosen, remark, len(asked)) == (USUAL, "", 1)


@pytest.mark.parametrize(
    ("message", "more"),
    [
        ("Unrecognized request argument supplied: ignore_eos", {}),
        ("Unknown parameter: 'ignore_eos'.", {"param": "ignore_eos", "code": "unknown_parameter"}),
        ("that is not supported", {"param": "ignore_eos"}),
        ("ignore_eos is unknown; known are model, prompt, max_tokens, stream_options", {}),
    ],
)
async def test_a_field_that_an_error_names_is_left_out(message: str, more: dict[str, Any]) -> None:
    def rule(asked: Asked) -> Reply:
        return refused(message, **more) if "ignore_eos" in asked.body else completed(asked)

    chosen, remark, asked = await found(rule)
    assert chosen == RequestFormat(without=("ignore_eos",))
    assert remark.startswith("requests go to /v1/completions without ignore_eos: ignore_eos: HTTP 400: ")
    assert "stream_options" in asked[-1].body


async def test_fields_are_named_by_their_location_and_not_by_the_request_that_is_repeated() -> None:
    chosen, _, _ = await found(without("stream_options"))
    assert chosen == RequestFormat(without=("stream_options",))
    chosen, remark, _ = await found(without("ignore_eos", "stream_options"))
    assert chosen == RequestFormat(without=("ignore_eos", "stream_options"))
    assert "without ignore_eos and stream_options: ignore_eos: HTTP 422" in remark


async def test_chats_whose_limit_has_the_newer_name_get_it() -> None:
    def rule(asked: Asked) -> Reply:
        if "chat" not in asked.path:
            return refused("This is not a completion model", 404)
        if "ignore_eos" in asked.body:
            return refused("Unknown parameter: 'ignore_eos'.", param="ignore_eos")
        return refused(NEW_LIMIT, param="max_tokens") if "max_tokens" in asked.body else completed(asked)

    chosen, remark, asked = await found(rule)
    assert chosen == RequestFormat("chat", without=("ignore_eos",), new_limit=True)
    assert remark.startswith(
        "requests go to /v1/chat/completions with max_completion_tokens instead of max_tokens without ignore_eos: "
        "/v1/completions with token ids: HTTP 404: This is not a completion model; ignore_eos: "
    )
    assert asked[-1].body["max_completion_tokens"] == 8


async def test_fields_of_the_user_stay_as_they_are() -> None:
    chosen, remark, asked = await found(without("ignore_eos"), extra_body={"ignore_eos": True, "max_tokens": 3})
    assert chosen == USUAL
    assert remark.startswith("the server accepts no request as it is (servetop doctor URL tells more; ")
    assert {each.body["ignore_eos"] for each in asked} == {True}


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_a_refusal_or_a_failure_ends_the_search(status: int) -> None:
    chosen, remark, asked = await found(lambda _: refused("no", status))
    assert chosen == USUAL
    assert remark == f"which requests the server accepts is unknown: /v1/completions: HTTP {status}: no"
    assert len(asked) == 1


async def test_the_search_is_short_whatever_the_server_says() -> None:
    everything = "model prompt messages max_tokens stream stream_options ignore_eos are wrong"
    chosen, remark, asked = await found(lambda _: refused(everything))
    assert chosen == USUAL
    assert len(asked) <= MOST_REQUESTS
    assert remark.startswith("the server accepts no request")


async def test_an_error_with_status_200_is_a_rejection() -> None:
    def rule(asked: Asked) -> Reply:
        if "chat" in asked.path:
            return completed(asked)
        return Reply(200, b'data: {"error": {"message": "prompt must be a string"}}\n\n', EVENTS)

    chosen, remark, _ = await found(rule)
    assert chosen == RequestFormat("chat")
    assert "/v1/completions as text: the server reports in the stream: prompt must be a string" in remark


async def test_an_unreachable_server_is_reported() -> None:
    target = RequestTarget(url="http://127.0.0.1:1", model="m")
    chosen, remark = await find_format(target, WorkloadConfig(endpoint=""), timeout=30)
    assert chosen == USUAL
    assert remark.startswith("which requests the server accepts is unknown: /v1/completions: connection refused")


async def test_token_ids_are_ordinary_ones_of_the_model_where_they_are_known() -> None:
    with odd_server() as server:
        target = RequestTarget(url=server.url, model="odd-model", token_ids=(1, 40, 41, 2))
        await find_format(target, WorkloadConfig(endpoint=""), timeout=30)
        assert server.asked[0].body["prompt"] == [40, 41]
