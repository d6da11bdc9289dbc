"""TGI's native dialect: one event per token, counts (requested by `details`) in the last one, no `[DONE]`.

Source: huggingface/text-generation-inference, `router/src/lib.rs` and `server.rs`. The path is `/`, which
acts as `/generate_stream` or `/generate`, depending on `stream` in the body.
"""

from __future__ import annotations

from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, render
from servetop.engines.dialects.json_event import ParsedEvent, Usage, parsed
from servetop.engines.dialects.json_values import count_in


def read_tgi(event: bytes) -> ParsedEvent:
    """Parse an event of `/generate_stream`; the one with `generated_text` is the last, and also has a token."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    token = content.get("token")
    found = token.get("text") if isinstance(token, dict) else None
    text = found if isinstance(found, str) else ""
    final = isinstance(content.get("generated_text"), str)
    return ParsedEvent(text, 1 if text else 0, usage=_usage(content), final=final)


def _usage(content: dict[str, Any]) -> Usage | None:
    """Return the counts of the last event or of a complete response, which lists the prompt in `prefill`."""
    details = content.get("details")
    if not isinstance(details, dict):
        return None
    prefill = details.get("prefill")
    listed = len(prefill) if isinstance(prefill, list) and prefill else None
    prompt = count_in(details, "input_length")
    return Usage(listed if prompt is None else prompt, count_in(details, "generated_tokens"))


class TgiDialect(JsonDialect):
    """`/` with a text prompt and one completion; it accepts neither token ids nor `ignore_eos`."""

    path = "/"
    reader = staticmethod(read_tgi)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body`."""
        parameters: dict[str, Any] = {"max_new_tokens": prompt.output_tokens, "details": True}
        if workload.temperature is not None:
            parameters["do_sample"] = workload.temperature > 0
            if workload.temperature > 0:
                parameters["temperature"] = workload.temperature
        request = {"inputs": prompt.text, "parameters": parameters, "stream": workload.stream}
        return render(request, workload.extra_body)

    def whole(self, content: Any) -> Chunk | None:
        if isinstance(content, list) and len(content) == 1:
            content = content[0]
        text = content.get("generated_text") if isinstance(content, dict) else None
        if not isinstance(text, str):
            return None
        usage = _usage(content) or Usage()
        tokens = int(bool(text)) if usage.output is None else usage.output
        return Chunk(text, tokens, True, usage.prompt, usage.output)
