"""Reads responses with the request functions of `vllm bench serve`; runs in vLLM's environment."""

from __future__ import annotations

import aiohttp
from vllm.benchmarks.lib.endpoint_request_func import ASYNC_REQUEST_FUNCS, RequestFuncInput

from tests.corpus.peers.readings import PeerReading, ResponseJob
from tests.corpus.peers.replay import Replay, main

_ROUTES = {
    "chat": ("openai-chat", "/v1/chat/completions"),
    "completions": ("openai", "/v1/completions"),
    "responses": ("openai-responses", "/v1/responses"),
}


async def read(replay: Replay, job: ResponseJob) -> PeerReading:
    """Send the request as the benchmark does, which always requests a stream."""
    if not job.stream:
        return PeerReading(ok=False, skipped="it always requests a stream")
    backend, path = _ROUTES[job.endpoint]
    request = RequestFuncInput(prompt="x", api_url=f"{replay.url}{path}", prompt_len=1, output_len=9, model="m")
    async with aiohttp.ClientSession() as session:
        found = await ASYNC_REQUEST_FUNCS[backend](request, session)
    return PeerReading(
        ok=found.success,
        error=found.error.strip(),
        content=found.generated_text,
        output_tokens=found.output_tokens or None,
    )


if __name__ == "__main__":
    main(read)
