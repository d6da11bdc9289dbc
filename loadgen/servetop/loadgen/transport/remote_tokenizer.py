"""The engine's own tokenizer, asked over HTTP: `/tokenize`, as vLLM and the simulator offer it."""

from __future__ import annotations

import asyncio

from servetop.core.config import ConnectionConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.engines.control.connection import tls_context
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
    """The workload's corpus in tokens where exact lengths are wanted, else none; the engine's or `tokenizer`'s."""
    if not workload.exact_lengths:
        return ()
    if workload.tokenizer:
        return await asyncio.to_thread(_counted_here, workload)
    return await tokenize(url, corpus_text(workload.dataset), model=model, api_key=api_key, connection=connection)


def _counted_here(workload: WorkloadConfig) -> tuple[int, ...]:
    return tuple(load_tokenizer(workload.tokenizer).encode(corpus_text(workload.dataset)))


async def tokenize(
    url: str, text: str, *, model: str, api_key: str | None = None, connection: ConnectionConfig | None = None
) -> tuple[int, ...]:
    """The ids of a text's tokens, without special ones; UsageError when the engine does not tell."""
    import httpx

    way = connection or ConnectionConfig()
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    body = {"model": model, "prompt": text, "add_special_tokens": False}
    where = f"{url.rstrip('/').removesuffix('/v1')}/tokenize"
    try:
        verify = tls_context(way) if url.startswith("https:") else False
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=False, proxy=way.proxy, verify=verify) as client:
            answer = await client.post(where, json=body, headers=headers)
        ids = answer.json().get("tokens") if answer.status_code == 200 else None
    except (httpx.HTTPError, ValueError, AttributeError) as error:
        raise UsageError(_words(where, f"{type(error).__name__}")) from None
    if not isinstance(ids, list) or not ids or not all(type(each) is int for each in ids):
        raise UsageError(_words(where, f"HTTP {answer.status_code}"))
    return tuple(ids)


def _words(where: str, why: str) -> str:
    return f"no tokens from {where} ({why}): give --tokenizer FILE, or leave out --exact-lengths for estimates"
