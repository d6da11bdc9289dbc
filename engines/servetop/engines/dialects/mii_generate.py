"""DeepSpeed-MII's native dialect: `/generate` of `python -m mii.entrypoints.api_server`.

Source: deepspeedai/DeepSpeed-MII, `mii/entrypoints/api_server.py`. An event has a list with the new text of
each prompt; there are no token counts, and `[DONE]` ends the stream.
"""

from __future__ import annotations

from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, render
from servetop.engines.dialects.json_event import ParsedEvent, parsed


def read_mii(event: bytes) -> ParsedEvent:
    """Parse an event of `/generate`."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    texts = [text for text in _texts(content) or () if text]
    return ParsedEvent("".join(texts), len(texts))


def _texts(content: object) -> list[str] | None:
    found = content.get("text") if isinstance(content, dict) else None
    if not isinstance(found, list):
        return None
    return [text if isinstance(text, str) else "" for text in found]


class MiiDialect(JsonDialect):
    """`/generate` with a text prompt and one completion; it accepts neither token ids nor `ignore_eos`.

    With `--ignore-eos`, `min_tokens` is set to the requested output length instead.
    """

    path = "/generate"
    reader = staticmethod(read_mii)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body`."""
        request: dict[str, Any] = {
            "prompt": prompt.text,
            "max_tokens": prompt.output_tokens,
            "stream": workload.stream,
        }
        if workload.ignore_eos:
            request["min_tokens"] = prompt.output_tokens
        if workload.temperature is not None:
            request["temperature"] = workload.temperature
        return render(request, workload.extra_body)

    def whole(self, content: Any) -> Chunk | None:
        texts = _texts(content)
        if texts is None:
            return None
        return Chunk("".join(texts), sum(map(bool, texts)), True)
