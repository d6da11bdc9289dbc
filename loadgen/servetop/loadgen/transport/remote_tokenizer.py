"""Tokenizes text with the engine's tokenizer over HTTP (`/tokenize`, as in vLLM and the simulator)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from servetop.core.config import ConnectionConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.engines.control.connection import tls_context
from servetop.engines.control.server_url import ServerUrl
from servetop.workload.prompts.dataset_prompts import corpus_text
from servetop.workload.prompts.local_tokenizer import load_tokenizer

_SECONDS = 60.0


async def corpus_tokens(
    workload: WorkloadConfig,
    url: str,
    *,
    model: str,
    api_key: str | None = None,
    connection: ConnectionConfig | None = None,
) -> tuple[int, ...]:
    """Return the workload's corpus as token ids for exact lengths, else nothing; from `tokenizer` or the engine."""
    if not workload.exact_lengths:
        return ()
    if workload.tokenizer:
        return await asyncio.to_thread(_tokenize_locally, workload)
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    headers |= {name.lower(): value for name, value in workload.headers.items()}
    return await tokenize(url, corpus_text(workload.dataset), model=model, headers=headers, connection=connection)


def _tokenize_locally(workload: WorkloadConfig) -> tuple[int, ...]:
    return tuple(load_tokenizer(workload.tokenizer).encode(corpus_text(workload.dataset)))


async def tokenize(
    url: str,
    text: str,
    *,
    model: str,
    headers: Mapping[str, str] | None = None,
    connection: ConnectionConfig | None = None,
) -> tuple[int, ...]:
    """Return the token ids of a text, without special tokens; UsageError if the engine does not return any."""
    import httpx

    settings = connection or ConnectionConfig()
    body = {"model": model, "prompt": text, "add_special_tokens": False}
    server = ServerUrl.parse(url)
    target = server.where("/tokenize")
    try:
        verify = tls_context(settings) if url.startswith("https:") else False
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=False, proxy=settings.proxy, verify=verify) as client:
            response = await client.post(f"{server.origin}{server.target('/tokenize')}", json=body, headers=headers)
        ids = response.json().get("tokens") if response.status_code == 200 else None
    except (httpx.HTTPError, ValueError, AttributeError) as error:
        raise UsageError(_error_text(target, type(error).__name__)) from None
    if not isinstance(ids, list) or not ids or not all(type(each) is int for each in ids):
        raise UsageError(_error_text(target, f"HTTP {response.status_code}"))
    return tuple(ids)


def _error_text(target: str, reason: str) -> str:
    return f"no tokens from {target} ({reason}): use --tokenizer FILE, or omit --exact-lengths to use estimates"
