"""DeepSpeed-MII's own wire: `/generate` of `python -m mii.entrypoints.api_server`.

Source: deepspeedai/DeepSpeed-MII, `mii/entrypoints/api_server.py`. An event brings the new text of each prompt in a
list; there are no counts at all, and `[DONE]` is the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.wire import Chunk, Prompt
from servetop.engines.dialects.reading import Reading, parsed
from servetop.engines.dialects.shapes import Shapes
from servetop.engines.dialects.stream import EventStream
from servetop.engines.dialects.words import error_text, error_words, excerpt


class MiiDialect:
    """Text in, one answer out: token ids cannot be sent, nor is there a way to have the end of text ignored.

    `min_tokens` asks for as many tokens as are wanted where the workload says so (`--ignore-eos`).
    """

    path = "/generate"

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        self.model = model
        """Without effect: a server of MII has one model."""
        self.continuous_usage = continuous_usage
        """Without effect: this wire has no counts."""
        self._shapes = Shapes(read_mii)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """The JSON body of one request; `extra_body` has the last word on every key."""
        request: dict[str, Any] = {
            "prompt": prompt.text,
            "max_tokens": prompt.output_tokens,
            "stream": workload.stream,
        }
        if workload.ignore_eos:
            request["min_tokens"] = prompt.output_tokens
        if workload.temperature is not None:
            request["temperature"] = workload.temperature
        return orjson.dumps({**request, **workload.extra_body})

    def answer(self, body: bytes) -> Sequence[Chunk]:
        """One chunk with all text, which is the end too: its tokens are not known, and counted as one."""
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError as broken:
            return [Chunk(error=f"broken answer: {broken}: {excerpt(body)}")]
        texts = _texts(content)
        if texts is None:
            return [Chunk(error=f"no answer in the body: {error_words(content)}")]
        return [Chunk("".join(texts), sum(map(bool, texts)), True)]

    def parser(self, *, keep_texts: bool = True) -> EventStream:
        """A fresh parser for one answer; what it learns of the server's events serves the next ones."""
        return EventStream(read_mii, self._shapes, continuous=False, keep_texts=keep_texts)

    def error_text(self, body: bytes) -> str:
        """The words of `{"error"}`, `{"message"}` or `{"detail"}`, else the text itself."""
        return error_text(body)


def read_mii(event: bytes) -> Reading:
    """An event of `/generate`."""
    content = parsed(event)
    if isinstance(content, Reading):
        return content
    texts = [text for text in _texts(content) or () if text]
    return Reading("".join(texts), len(texts))


def _texts(content: object) -> list[str] | None:
    found = content.get("text") if isinstance(content, dict) else None
    if not isinstance(found, list):
        return None
    return [text if isinstance(text, str) else "" for text in found]
