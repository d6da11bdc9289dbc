"""The simulator's `/v1/responses`, read by the client's dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.serve import SimulatorServer
from tests.simulator.server_process import client_of

DIALECT = dialect_for("responses", model="tiny", continuous_usage=False)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings={"time_scale": 0.02})
    server = SimulatorServer(spec, served_name="tiny")
    with client_of(server) as client:
        yield client


def respond(client: httpx.Client, **body: Any) -> httpx.Response:
    return client.post("/v1/responses", json={"model": "tiny", "input": "one two three", **body})


def test_a_stream_is_deltas_and_a_completed_event_with_the_counts(client: httpx.Client) -> None:
    response = respond(client, max_output_tokens=5, ignore_eos=True, stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    chunks = DIALECT.parser(keep_texts=True).feed(response.content)
    assert [chunk.tokens for chunk in chunks] == [1, 1, 1, 1, 1, 0]
    assert chunks[-1] == Chunk("", 0, True, 8, 5, 0, reasoning_tokens=0)
    assert all(chunk.text.startswith(" ") for chunk in chunks[:5])


def test_a_complete_response_reports_that_its_token_limit_ended_it(client: httpx.Client) -> None:
    response = respond(client, max_output_tokens=4, ignore_eos=True)
    assert response.json()["incomplete_details"] == {"reason": "max_output_tokens"}
    (chunk,) = DIALECT.parse_response(response.content)
    assert (chunk.tokens, chunk.final, chunk.prompt_tokens, len(chunk.text.split())) == (
        4,
        True,
        8,
        4,
    )  # four of text, four of the chat template


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"model": "nope"}, 404, "The model `nope` does not exist."),
        ({"input": 7}, 400, "input should be a string or a list of messages"),
        ({"max_output_tokens": 0}, 400, "must be at least 1"),
    ],
)
def test_invalid_requests_are_rejected(client: httpx.Client, body: dict[str, Any], status: int, expected: str) -> None:
    response = respond(client, **body)
    assert response.status_code == status
    assert expected in DIALECT.error_text(response.content)
