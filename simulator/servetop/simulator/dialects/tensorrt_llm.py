"""TensorRT-LLM's `trtllm-serve`: the OpenAI routes, `/metrics` as JSON that is gone once read, `/perf_metrics`.

Source: NVIDIA/TensorRT-LLM, `tensorrt_llm/serve/openai_server.py`; as started with `enable_iter_perf_stats`,
`return_perf_metrics` and `perf_metrics_max_requests`. The fields of its streams' events and of
`/perf_metrics` are unproven.
"""

from __future__ import annotations

from functools import partial

import orjson

from servetop.simulator.dialects.completion_templates import CompletionTemplate, ShapedStream, ShapedWhole
from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, negotiated, telling
from servetop.simulator.dialects.tensorrt_llm_metrics import TrtllmTally
from servetop.simulator.server.generation_request import ApiError
from servetop.simulator.server.realtime import RealTimeEngine

VERSION = "1.2.1"
_HEAD = '"id":"$id","object":"%s","created":$created,"model":"$model"'
_TEXT_HEAD, _CHUNK_HEAD = _HEAD % "text_completion", _HEAD % "chat.completion.chunk"
_ENDS = '"logprobs":null,"finish_reason":$finish,"stop_reason":null,"disaggregated_params":null'
_CHUNK_ENDS = '"logprobs":null,"finish_reason":$finish,"stop_reason":null'
_SAID = '{"role":"assistant","content":"$text","reasoning_content":null,"tool_calls":[]}'
TEXT_SHAPE = CompletionTemplate(
    token=f'{{{_TEXT_HEAD},"choices":[{{"index":0,"text":"$word","token_ids":null,{_ENDS}}}],"usage":null}}',
    usage=f'{{{_TEXT_HEAD},"choices":[],"usage":$usage}}',
    whole=f'{{{_TEXT_HEAD},"choices":[{{"index":0,"text":"$text","token_ids":null,{_ENDS}}}],"usage":$usage}}',
)
CHAT_SHAPE = CompletionTemplate(
    role=f'{{{_CHUNK_HEAD},"choices":[{{"index":0,"delta":{{"role":"assistant","content":""}},{_CHUNK_ENDS}}}],"usage":null}}',
    token=f'{{{_CHUNK_HEAD},"choices":[{{"index":0,"delta":{{"content":"$word"}},{_CHUNK_ENDS}}}],"usage":null}}',
    usage=f'{{{_CHUNK_HEAD},"choices":[],"usage":$usage}}',
    whole=f'{{{_HEAD % "chat.completion"},"choices":[{{"index":0,"message":{_SAID},{_ENDS}}}],"usage":$usage}}',
)


class TensorRtLlmServerDialect(ServerDialect):
    """`trtllm-serve`."""

    title = f"TensorRT-LLM {VERSION}"
    profile = "tensorrt-llm-2024"
    counts: TrtllmTally

    def __init__(self, site: ServerContext) -> None:
        super().__init__(site, TrtllmTally())

    def open(self, engine: RealTimeEngine) -> None:
        """See Wire."""
        super().open(engine)
        self.counts.engine = engine

    def routes(self) -> dict[tuple[str, str], Handler]:
        """See Wire."""
        text = (partial(ShapedStream, shape=TEXT_SHAPE), partial(ShapedWhole, shape=TEXT_SHAPE))
        chat = (partial(ShapedStream, shape=CHAT_SHAPE), partial(ShapedWhole, shape=CHAT_SHAPE))
        return {
            ("POST", "/v1/completions"): self.asking(chat=False, kinds=text, prefix="cmpl-"),
            ("POST", "/v1/chat/completions"): self.asking(chat=True, kinds=chat, prefix="chatcmpl-"),
            ("GET", "/v1/models"): telling(self._models),
            ("GET", "/health"): telling(lambda: b""),
            ("GET", "/health_generate"): telling(lambda: b""),
            ("GET", "/version"): telling(lambda: {"version": VERSION}),
            ("GET", "/server_info"): telling(lambda: {"disaggregated_params": None}),
            ("GET", "/metrics"): telling(self.counts.drain),
            ("GET", "/prometheus/metrics"): negotiated(self.page),
            ("GET", "/perf_metrics"): telling(self.counts.drain_requests),
        }

    def page(self) -> bytes:
        """`/prometheus/metrics`."""
        return self.counts.page()

    def refusal(self, error: ApiError) -> bytes:
        """The OpenAI error without the object around it."""
        fields = {"object": "error", "message": str(error), "type": error.kind, "param": error.param}
        return orjson.dumps({**fields, "code": error.status})

    def _models(self) -> dict[str, object]:
        models = [
            {"id": name, "object": "model", "created": self.born, "owned_by": "tensorrt_llm"}
            for name in self.site.names
        ]
        return {"object": "list", "data": models}
