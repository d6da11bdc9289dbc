"""Triton's generate extension with a TensorRT-LLM model: `/v2/models/MODEL/generate_stream`.

An event has a `text_output` and no counts: one with text counts as a token. There is no end marker and no usage; a body
that ends in order is the whole answer. A sequence whose end is to be ignored is asked for as many tokens at least as at
most (`min_tokens`); the newer Python backend has no input for that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt, ServerTiming
from servetop.core.units import NS_PER_S
from servetop.engines.dialects.json_dialect import JsonDialect
from servetop.engines.dialects.json_event import ParsedEvent, parsed

LLM_API_MODEL = "tensorrt_llm"
"""The model of TensorRT-LLM's newer Python backend, whose inputs are named after its sampling parameters."""
_INSTANTS = ("arrival_time_ns", "first_scheduled_time_ns", "first_token_time_ns", "last_token_time_ns")
_FIELDS = ("max_tokens", "temperature", "stream")
_LLM_API_FIELDS = ("sampling_param_max_tokens", "sampling_param_temperature", "streaming")


def read_triton(event: bytes) -> ParsedEvent:
    """An event of `generate_stream`; errors come as events too, with HTTP 200."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    text = _text(content)
    return ParsedEvent(text, 1 if text else 0, timing=_timing(content))


def _timing(content: Mapping[str, Any]) -> ServerTiming | None:
    """What `return_perf_metrics` brings: instants in nanoseconds, of which those out of order are not believed."""
    found = [content.get(name) for name in _INSTANTS]
    instants = [value for value in found if isinstance(value, (int, float))]
    if len(instants) < len(found) or instants != sorted(instants) or not math.isfinite(instants[-1]):
        return None
    return ServerTiming(*((end - start) / NS_PER_S for start, end in itertools.pairwise(instants)))


def _text(content: Mapping[str, Any]) -> str:
    """A string, or several where the model's output has no fixed length."""
    found = content.get("text_output")
    texts = found if isinstance(found, list) else [found]
    return "".join(text for text in texts if isinstance(text, str))


class TritonDialect(JsonDialect):
    """One model, whose name is in the path; several models by weight cannot be asked."""

    reader = staticmethod(read_triton)
    ends_with_body = True

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        super().__init__(model, continuous_usage=continuous_usage)
        self.path = f"/v2/models/{quote(model, safe='')}/generate_stream"
        self._fields = _LLM_API_FIELDS if model == LLM_API_MODEL else _FIELDS

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request; `extra_body` overrides every key."""
        most, temperature, stream = self._fields
        request: dict[str, Any] = {
            "text_input": prompt.text,
            most: prompt.output_tokens,
            stream: workload.stream,
        }
        if workload.ignore_eos and self.model != LLM_API_MODEL:
            request["min_tokens"] = prompt.output_tokens
        if workload.temperature is not None:
            request[temperature] = workload.temperature
        return orjson.dumps({**request, **workload.extra_body})

    def whole(self, content: Any) -> Chunk | None:
        """Of a server that answers in JSON what was asked as a stream: its text as one token."""
        text = _text(content) if isinstance(content, dict) else ""
        return Chunk(text, 1, True) if text else None
