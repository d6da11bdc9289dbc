"""Tokenizes a text with the server's own tokenizer, which vLLM, SGLang, llama.cpp and the simulator offer."""

from __future__ import annotations

from typing import Any

from servetop.engines.control.control_client import ServerClient

TOKENIZE = "/tokenize"
_KNOWN_PATH = (200, 405, 422)
"""What a server answers to a GET of a path that it has for POST."""
_USUAL_FIELD, _LLAMA_CPP_FIELD = "prompt", "content"


async def tokenize_text(client: ServerClient, text: str, *, model: str | None, field: str = "") -> tuple[int, ...]:
    """Return the token ids of a text, without special tokens; empty if the server cannot tokenize.

    `field` has the text in the request. If it is empty a GET finds out whether the server has the path, because an
    unknown server, or a gateway, might count a POST as a request of the load.
    """
    if not field and (await client.request(TOKENIZE)).status not in _KNOWN_PATH:
        return ()
    special = "add_special" if field == _LLAMA_CPP_FIELD else "add_special_tokens"
    body: dict[str, Any] = {field or _USUAL_FIELD: text, special: False}
    if model:
        body["model"] = model
    found = (await client.request(TOKENIZE, method="POST", data=body)).json()
    ids = found.get("tokens") if isinstance(found, dict) else None
    if not isinstance(ids, list) or not all(type(each) is int and each >= 0 for each in ids):
        return ()
    return tuple(ids)
