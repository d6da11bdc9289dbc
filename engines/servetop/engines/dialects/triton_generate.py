"""Triton's generate extension with a TensorRT-LLM model: `/v2/models/MODEL/generate_stream`.

An event has a `text_output` and no counts: each event with text counts as one token. There is no end marker; a body
that ends regularly is complete. With `ignore_eos`, `min_tokens` is set to the requested output length; the newer Python
backend has no such input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt, ServerTiming
from servetop.core.units import NS_PER_S
from servetop.engines.dialects.json_dialect import JsonDialect, render
from servetop.engines.dialects.json_event import ParsedEvent, parsed

LLM_API_MODEL = "tensorrt_llm"
"""The model of TensorRT-LLM's newer Python backend, whose inputs are named after its sampling parameters."""
_TIMESTAMPS = ("arrival_time_ns", "first_scheduled_time_ns", "first_token_time_ns", "last_token_time_ns")
_FIELDS = ("max_tokens", "temperature", "stream")
_LLM_API_FIELDS = ("sampling_param_max_tokens", "sampling_param_temperature", "streaming")


def read_triton(event: bytes) -> ParsedEvent:
    """Parse an event of `generate_stream`; errors are events too, with HTTP 200."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    text = _text(content)
    return ParsedEvent(text, 1 if text else 0, timing=_timing(content))


def _timing(content: Mapping[str, Any]) -> ServerTiming | None:
    """Return the times of `return_perf_metrics` (nanoseconds); None if one is missing or they are out of order."""
    found = [content.get(name) for name in _TIMESTAMPS]
    timestamps = [value for value in found if isinstance(value, (int, float))]
    if len(timestamps) < len(found) or timestamps != sorted(timestamps) or not math.isfinite(timestamps[-1]):
        return None
    return ServerTiming(*((end - start) / NS_PER_S for start, end in itertools.pairwise(timestamps)))


def _text(content: Mapping[str, Any]) -> str:
    """Return the text: a string, or a list of strings if the model's output has a variable length."""
    found = content.get("text_output")
    texts = found if isinstance(found, list) else [found]
    return "".join(text for text in texts if isinstance(text, str))


class TritonDialect(JsonDialect):
    """The generate extension of one model, whose name is in the path; a mix of models is not supported."""

    reader = staticmethod(read_triton)
    ends_with_body = True

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        super().__init__(model, continuous_usage=continuous_usage)
        self.path = f"/v2/models/{quote(model, safe='')}/generate_stream"
        self._fields = _LLM_API_FIELDS if model == LLM_API_MODEL else _FIELDS

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body`."""
        max_tokens, temperature, stream = self._fields
        request: dict[str, Any] = {
            "text_input": prompt.text,
            max_tokens: prompt.output_tokens,
            stream: workload.stream,
        }
        if workload.ignore_eos and self.model != LLM_API_MODEL:
            request["min_tokens"] = prompt.output_tokens
        if workload.temperature is not None:
            request[temperature] = workload.temperature
        return render(request, workload.extra_body)

    def whole(self, content: Any) -> Chunk | None:
        """Return the text as one token, for a server that responds with JSON instead of a stream."""
        text = _text(content) if isinstance(content, dict) else ""
        return Chunk(text, 1, True) if text else None
