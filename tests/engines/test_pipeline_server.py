"""The pipeline server's batches and HTTP API with a deterministic model; tests/integration use a real one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from servetop.engines.adapters.servers.pipeline_server import Batches, PipelineRequest, PipelineServer


class Words:
    """A tokenizer of words: a word's token is its length."""

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [len(word) for word in text.split()]}

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return " ".join("x" * token for token in tokens)


class Repeater:
    """Repeats the prompt's last token up to the requested length; token 13 raises. Waits while the gate is closed."""

    version = "9"

    def __init__(self) -> None:
        self.tokenizer = Words()
        self.sizes: list[int] = []
        self.gate = threading.Event()
        self.gate.set()

    def generate(self, batch: Sequence[PipelineRequest]) -> list[tuple[list[int], bool]]:
        self.sizes.append(len(batch))
        assert self.gate.wait(10)
        if any(13 in each.ids for each in batch):
            raise ValueError("13 brings bad luck")
        return [(each.ids[-1:] * each.max_tokens, not each.ignore_eos) for each in batch]


@asynccontextmanager
async def serving(model: Repeater, *, size: int, timeout: float = 0.05) -> AsyncIterator[httpx.AsyncClient]:
    batches = Batches(model, size=size, timeout=timeout)  # type: ignore[arg-type]
    server = await asyncio.start_server(PipelineServer(batches, "m", 64).serve, "127.0.0.1", 0)
    work = asyncio.create_task(batches.run())
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=10) as client:
        yield client
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    server.close()
    await server.wait_closed()


async def completed(client: httpx.AsyncClient, prompt: object, **options: Any) -> httpx.Response:
    return await client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 3, **options})


async def page(client: httpx.AsyncClient) -> dict[str, float]:
    lines = (await client.get("/metrics")).text.splitlines()
    return {name.removeprefix("servetop_pipeline_"): float(value) for name, value in map(str.split, lines)}


async def test_what_comes_together_is_one_batch_up_to_its_size() -> None:
    model = Repeater()
    async with serving(model, size=4, timeout=10.0) as client:
        answers = await asyncio.gather(*(completed(client, [7, number]) for number in range(1, 9)))
    assert model.sizes == [4, 4]
    assert [each.json()["choices"][0]["text"] for each in answers][:2] == ["x x x", "xx xx xx"]


async def test_a_batch_begins_when_its_first_request_has_waited_long_enough() -> None:
    model = Repeater()
    async with serving(model, size=4, timeout=0.01) as client:
        assert (await completed(client, "one")).json()["usage"]["completion_tokens"] == 3
    assert model.sizes == [1]


async def test_without_batching_requests_are_taken_one_by_one_and_the_page_counts_them() -> None:
    model = Repeater()
    model.gate.clear()
    async with serving(model, size=1) as client:
        requested = [asyncio.create_task(completed(client, [7])) for _ in range(3)]
        async with asyncio.timeout(10):
            while (reported := await page(client))["requests_running"] + reported["requests_waiting"] < 3:
                await asyncio.sleep(0)
        assert (reported["requests_running"], reported["requests_waiting"], reported["max_num_seqs"]) == (1, 2, 1)
        model.gate.set()
        await asyncio.gather(*requested)
        reported = await page(client)
    assert model.sizes == [1, 1, 1]
    assert (
        reported["requests_finished_total"],
        reported["prompt_tokens_total"],
        reported["generation_tokens_total"],
    ) == (3, 3, 9)


@pytest.mark.parametrize(("path", "requested"), [("completions", "prompt"), ("chat/completions", "messages")])
async def test_a_stream_is_one_event_with_its_counts_and_the_end(path: str, requested: str) -> None:
    question: object = "one two" if requested == "prompt" else [{"role": "user", "content": "one two"}]
    async with serving(Repeater(), size=1) as client:
        body = {requested: question, "max_tokens": 2, "stream": True, "ignore_eos": True}
        answer = await client.post(f"/v1/{path}", json=body)
    assert answer.headers["content-type"] == "text/event-stream"
    event, end = [part for part in answer.text.split("\n\n") if part]
    assert '"xxx xxx"' in event
    assert '"completion_tokens": 2' in event
    assert '"finish_reason": "length"' in event
    assert end == "data: [DONE]"


@pytest.mark.parametrize(
    ("prompt", "options", "status", "words"),
    [
        ("", {}, 400, "not empty"),
        ({"a": 1}, {}, 400, "a text or a list of token ids"),
        ("one", {"max_tokens": 64}, 400, "1 prompt tokens and 64 completion tokens exceed 64"),
        ([13], {}, 500, "ValueError: 13 brings bad luck"),
    ],
)
async def test_an_invalid_request_gets_an_error_and_the_next_one_is_served(
    prompt: object, options: dict[str, Any], status: int, words: str
) -> None:
    async with serving(Repeater(), size=1) as client:
        answer = await completed(client, prompt, **options)
        assert (await completed(client, "one")).status_code == 200
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


async def test_other_paths_and_broken_bodies_are_refused() -> None:
    async with serving(Repeater(), size=1) as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        assert (await client.get("/version")).json() == {"version": "9"}
        assert (await client.get("/v1/models")).json()["data"][0]["owned_by"] == "servetop-pipeline"
        assert [(await client.get("/nope")).status_code, (await client.post("/nope")).status_code] == [404, 404]
        assert (await client.post("/v1/completions", content=b"[]")).status_code == 400
