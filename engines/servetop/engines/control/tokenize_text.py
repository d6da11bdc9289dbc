"""Tokenizes a text with the tokenizer of a server that has a route for it: vLLM, SGLang, the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servetop.engines.control.control_client import ServerClient

TOKENIZE = "/tokenize"
_KNOWN_PATH = (200, 405, 422)
"""What a server answers to a GET of a path that it has for POST."""


async def tokenize_text(client: ServerClient, text: str, *, model: str | None) -> tuple[int, ...]:
    """The token ids of a text, without special tokens; empty if the server has no such route.

    A GET finds out, because an unknown server, or a gateway, might count a POST as a request of the load.
    """
    if (await client.request(TOKENIZE)).status not in _KNOWN_PATH:
        return ()
    body: Mapping[str, Any] = {"prompt": text, "add_special_tokens": False, **({"model": model} if model else {})}
    found = (await client.request(TOKENIZE, method="POST", data=body)).json()
    ids = found.get("tokens") if isinstance(found, dict) else None
    if not isinstance(ids, list) or not all(type(each) is int and each >= 0 for each in ids):
        return ()
    return tuple(ids)
