"""TensorRT-LLM's `trtllm-serve`: OpenAI routes, `/metrics` as JSON that can be read only once, `/perf_metrics`.

Source: NVIDIA/TensorRT-LLM, `tensorrt_llm/serve/openai_server.py`; as started with `enable_iter_perf_stats`,
`return_perf_metrics` and `perf_metrics_max_requests`. The fields of stream events and of `/perf_metrics` are
unverified.
"""

from __future__ import annotations

from servetop.simulator.dialects.completion_templates import CompletionTemplate, openai_json, template_factories
from servetop.simulator.dialects.server_dialect import (
    Handler,
    ServerContext,
    ServerDialect,
    flat_error,
    json_route,
    metrics_route,
)
from servetop.simulator.dialects.tensorrt_llm_metrics import TensorRtLlmCounters
from servetop.simulator.server.generation_request import ApiError

VERSION = "1.2.1"
_CHOICE_END = '"logprobs":null,"finish_reason":$finish,"stop_reason":null'
_WHOLE_CHOICE_END = f'{_CHOICE_END},"disaggregated_params":null'
_MESSAGE = '{"role":"assistant","content":"$text","reasoning_content":null,"tool_calls":[]}'


def _text(text: str, *, usage: str = "null") -> str:
    return openai_json("text_completion", f'"text":"{text}","token_ids":null,{_WHOLE_CHOICE_END}', usage=usage)


def _delta(message: str) -> str:
    return openai_json("chat.completion.chunk", f'"delta":{message},{_CHOICE_END}', usage="null")


TEXT_TEMPLATE = CompletionTemplate(
    token=_text("$word"),
    usage=openai_json("text_completion", usage="$usage"),
    whole=_text("$text", usage="$usage"),
)
CHAT_TEMPLATE = CompletionTemplate(
    role=_delta('{"role":"assistant","content":""}'),
    token=_delta('{"content":"$word"}'),
    usage=openai_json("chat.completion.chunk", usage="$usage"),
    whole=openai_json("chat.completion", f'"message":{_MESSAGE},{_WHOLE_CHOICE_END}', usage="$usage"),
)


class TensorRtLlmServerDialect(ServerDialect):
    """The server `trtllm-serve`."""

    title = f"TensorRT-LLM {VERSION}"
    profile = "tensorrt-llm-2024"
    counters: TensorRtLlmCounters

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, TensorRtLlmCounters())

    def routes(self) -> dict[tuple[str, str], Handler]:
        text, chat = template_factories(TEXT_TEMPLATE), template_factories(CHAT_TEMPLATE)
        return {
            ("POST", "/v1/completions"): self.generation_route(chat=False, factories=text, prefix="cmpl-"),
            ("POST", "/v1/chat/completions"): self.generation_route(chat=True, factories=chat, prefix="chatcmpl-"),
            ("GET", "/v1/models"): json_route(lambda: self.model_list("tensorrt_llm")),
            ("GET", "/health"): json_route(lambda: b""),
            ("GET", "/health_generate"): json_route(lambda: b""),
            ("GET", "/version"): json_route(lambda: {"version": VERSION}),
            ("GET", "/server_info"): json_route(lambda: {"disaggregated_params": None}),
            ("GET", "/metrics"): json_route(self.counters.drain),
            ("GET", "/prometheus/metrics"): metrics_route(self.page),
            ("GET", "/perf_metrics"): json_route(self.counters.drain_requests),
        }

    def error_body(self, error: ApiError) -> bytes:
        """Return the OpenAI error without the enclosing object."""
        return flat_error(error, type=error.error_type, param=error.param)
