"""Several completions of one request (`n`), over HTTP."""

from __future__ import annotations

import json

import httpx

from tests.harness import wait_for


def test_n_completions_of_each_of_several_prompts_share_one_request(client: httpx.Client) -> None:
    body = {"prompt": ["one two three", [1, 2, 3, 4, 5]], "n": 2, "max_tokens": 6, "ignore_eos": True}
    whole = client.post("/v1/completions", json=body).json()
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2, 3]
    assert len({choice["text"] for choice in whole["choices"]}) > 1
    one, other = (client.post("/tokenize", json={"prompt": prompt}).json()["count"] for prompt in body["prompt"])  # type: ignore[attr-defined]
    assert whole["usage"] == {"prompt_tokens": one + other, "completion_tokens": 24, "total_tokens": one + other + 24}
    options = {"stream": True, "stream_options": {"include_usage": True}}
    lines = [line for line in client.post("/v1/completions", json=body | options).text.split("\n\n") if line]
    assert lines.pop() == "data: [DONE]"
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert events[-1]["usage"] == whole["usage"]
    indexes = [choice["index"] for event in events for choice in event["choices"]]
    assert sorted(indexes) == [0] * 6 + [1] * 6 + [2] * 6 + [3] * 6


def test_a_chat_with_n_has_a_role_and_an_end_for_each_choice(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "n": 3, "max_tokens": 4, "stream": True}
    body_text = client.post("/v1/chat/completions", json=body | {"ignore_eos": True}).text
    events = [json.loads(line.removeprefix("data: ")) for line in body_text.split("\n\n")[:-2]]
    choices = [event["choices"][0] for event in events]
    assert sorted(choice["index"] for choice in choices if "role" in choice["delta"]) == [0, 1, 2]
    assert sorted(choice["index"] for choice in choices if choice["finish_reason"]) == [0, 1, 2]


def test_a_client_that_disconnects_between_its_choices_frees_their_blocks(client: httpx.Client) -> None:
    body = {"prompt": "one two three", "n": 8, "max_tokens": 300, "stream": True, "seed": 3}
    with httpx.Client(base_url=client.base_url) as leaver, leaver.stream("POST", "/v1/completions", json=body) as reply:
        for line in reply.iter_lines():
            if '"finish_reason":"' in line:
                break
    wait_for(lambda: client.get("/load").json() == {"server_load": 0}, seconds=20, what="no request in the engine")
    assert client.post("/v1/completions", json={"prompt": "x", "max_tokens": 2}).status_code == 200
