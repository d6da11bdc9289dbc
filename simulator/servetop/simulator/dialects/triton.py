"""Triton Inference Server with the TensorRT-LLM backend: `/v2/…`, `generate` and `generate_stream`.

Captured from Triton 2.51. The metrics have a separate port. Streams have no `[DONE]`, no finish reason and, unless
requested, no token counts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from servetop.simulator.dialects.completion_templates import TemplateCompletion
from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, json_route
from servetop.simulator.dialects.triton_metrics import TritonCounters
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation
from servetop.simulator.server.httpd import STREAM_END, Connection, HttpRequest, chunk

VERSION = "2.51.0"
LIMIT_INPUTS = {"ensemble": "max_tokens", "tensorrt_llm": "sampling_param_max_tokens"}
"""The input that limits the output tokens, by model (that of `tensorrt_llm` is the LLM API backend's)."""
_DECOUPLED = (
    "generate expects model to produce exactly 1 response, use generate stream for model that generates various "
)
_EXTENSIONS = (
    "classification sequence model_repository model_repository(unload_dependents) schedule_policy model_configuration "
    "system_shared_memory cuda_shared_memory binary_tensor_data parameters statistics trace logging"
)
_INPUTS = {"text_input": "STRING", "stream": "BOOL", "temperature": "FP32", "end_id": "INT32", "min_tokens": "INT32"}
_INPUTS |= {"random_seed": "UINT64", "return_num_input_tokens": "BOOL", "return_num_output_tokens": "BOOL"}


_LOGGING = {"log_file": "", "log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0}
_LOGGING |= {"log_format": "default"}
_TRACING = {"trace_level": ["OFF"], "trace_rate": "1000", "trace_count": "-1", "log_frequency": "0", "trace_file": ""}
_TRACING |= {"trace_mode": "triton"}


def _settings(path: str, values: dict[str, Any]) -> dict[tuple[str, str], Handler]:
    """Return the routes that read and change these settings, which have no effect here."""

    def change(request: HttpRequest, to: Connection) -> None:
        changes = read_body(request.body)
        unknown = next((name for name in changes if name not in values), None)
        if unknown is not None:
            raise ApiError(f"unknown setting: '{unknown}'")
        values.update({name: value for name, value in changes.items() if value is not None})
        to.respond(200, orjson.dumps(values))

    return {("GET", path): json_route(lambda: values), ("POST", path): change}


def _refuse_infer(_: HttpRequest, __: Connection) -> None:
    """Refuse `infer`, as Triton does for models with a decoupled transaction policy."""
    raise ApiError("HTTP end point doesn't support models with decoupled transaction policy")


class TritonServerDialect(ServerDialect):
    """The server `tritonserver` with the models of the TensorRT-LLM backend."""

    title = f"Triton {VERSION} with TensorRT-LLM"
    profile = "triton-2024"
    separate_metrics_port = True
    counters: TritonCounters

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, TritonCounters())
        self._logging: dict[str, Any] = dict(_LOGGING)
        self._tracing: dict[str, Any] = dict(_TRACING)

    def routes(self) -> dict[tuple[str, str], Handler]:
        ready = json_route(lambda: b"", content_type=b"text/plain")
        table: dict[tuple[str, str], Handler] = {
            ("GET", "/v2/health/ready"): ready,
            ("GET", "/v2/health/live"): ready,
            ("GET", "/v2"): json_route(self._server),
            ("GET", "/v2/models/stats"): json_route(lambda: self._stats(*LIMIT_INPUTS)),
            **_settings("/v2/logging", self._logging),
            **_settings("/v2/trace/setting", self._tracing),
            ("POST", "/v2/repository/index"): json_route(
                lambda: [{"name": model, "version": "1", "state": "READY"} for model in LIMIT_INPUTS]
            ),
        }
        for model in LIMIT_INPUTS:
            path = f"/v2/models/{model}"
            table |= {
                ("GET", path): json_route(partial(self._metadata, model)),
                ("GET", f"{path}/ready"): ready,
                ("GET", f"{path}/config"): json_route(partial(self._config, model)),
                ("GET", f"{path}/stats"): json_route(partial(self._stats, model)),
                ("GET", f"{path}/versions/1/stats"): json_route(partial(self._stats, model)),
                **_settings(f"{path}/trace/setting", self._tracing),
                ("POST", f"{path}/infer"): _refuse_infer,
                ("POST", f"{path}/versions/1/infer"): _refuse_infer,
                ("POST", f"{path}/generate"): partial(self._generate, model=model, stream=False),
                ("POST", f"{path}/generate_stream"): partial(self._generate, model=model, stream=True),
            }
        return table

    def error_body(self, error: ApiError) -> bytes:
        """Return `{"error": "…"}`."""
        return orjson.dumps({"error": str(error)})

    def unknown(self, request: HttpRequest) -> ApiError:
        """Return a 404 that names the unknown model, or the default error."""
        parts = request.path.split("/")
        if request.path.startswith("/v2/models/") and parts[3] not in LIMIT_INPUTS:
            return ApiError(f"Request for unknown model: '{parts[3]}' is not found", status=404)
        return super().unknown(request)

    def _generate(self, request: HttpRequest, to: Connection, *, model: str, stream: bool) -> None:
        data = read_body(request.body)
        self._check_inputs(data, model)
        if data.get("stream") and not stream:
            to.respond(200, orjson.dumps({"error": f"{_DECOUPLED}number of responses"}))
            return
        body = {
            "prompt": data["text_input"],
            "max_tokens": data[LIMIT_INPUTS[model]],
            "min_tokens": data.get("min_tokens"),
            "ignore_eos": data.get("end_id") == -1,
            "seed": data.get("random_seed"),
            "stream": stream,
        }
        generation = read_generation(body, chat=False, context_limit=self.context.spec.context_limit)
        counts = tuple(name for name in ("input", "output") if data.get(f"return_num_{name}_tokens"))
        factory = partial(TritonStream if stream else TritonResponse, counts=counts)
        self.admission.submit(generation, to, factory=factory, model=model, prefix="")

    def _check_inputs(self, data: dict[str, Any], model: str) -> None:
        required = ("text_input", LIMIT_INPUTS[model])
        missing = [name for name in required if name not in data]
        if missing:
            given = [name for name in data if name in _INPUTS or name in required]
            raise ApiError(
                f"[request id: <id_unknown>] expected number of inputs between {len(required)} and {len(_INPUTS) + 1} "
                f"but got {len(given)} inputs for model '{model}'. Got input(s) [{_quoted(given)}], but missing "
                f"required input(s) [{_quoted(missing)}]. Please provide all required input(s)."
            )

    def _server(self) -> dict[str, object]:
        return {"name": "triton", "version": VERSION, "extensions": _EXTENSIONS.split()}

    def _metadata(self, model: str) -> dict[str, object]:
        kinds = {"STRING": "BYTES"}
        inputs = [
            {"name": name, "datatype": kinds.get(kind, kind), "shape": [1]} for name, kind in _inputs(model).items()
        ]
        outputs = [{"name": "text_output", "datatype": "BYTES", "shape": [-1]}]
        return {"name": model, "versions": ["1"], "platform": "", "inputs": inputs, "outputs": outputs}

    def _config(self, model: str) -> dict[str, object]:
        required = ("text_input", LIMIT_INPUTS[model])
        inputs = [
            {"name": name, "data_type": f"TYPE_{kind}", "dims": [1], "optional": name not in required}
            for name, kind in _inputs(model).items()
        ]
        return {
            "name": model,
            "platform": "",
            "backend": "tensorrtllm",
            "max_batch_size": self.engine.scheduler.limits.max_num_seqs,
            "input": inputs,
            "output": [{"name": "text_output", "data_type": "TYPE_STRING", "dims": [-1]}],
            "parameters": {},
            "model_transaction_policy": {"decoupled": True},
        }

    def _stats(self, *models: str) -> dict[str, object]:
        return {"model_stats": [self._stats_of(model) for model in models]}

    def _stats_of(self, model: str) -> dict[str, object]:
        counters, count = self.counters, self.counters.finishes
        durations = {name: {"count": count, "ns": int(s * 1e9)} for name, s in counters.durations().items()}
        total, zero = durations.pop("request"), {"count": 0, "ns": 0}
        compute = {name: value for name, value in durations.items() if name.startswith("compute")}
        return {
            "name": model,
            "version": "1",
            "last_inference": int(counters.last_inference * 1e3),
            "inference_count": count,
            "execution_count": count,
            "inference_stats": {
                "success": total,
                "fail": {"count": counters.aborts, "ns": 0},
                **durations,
                **dict.fromkeys(("cache_hit", "cache_miss"), zero),
            },
            "response_stats": {},
            "batch_stats": [{"batch_size": 1, **compute}] if count else [],
            "memory_usage": [],
        }


class _TritonCompletion(TemplateCompletion):
    """A Triton completion; `counts` names the token counts, `input` or `output`, that it reports."""

    counts: tuple[str, ...] = ()

    def body(self, text: bytes, *, tokens: int) -> bytes:
        """Return one response with this text of `tokens` tokens."""
        counts_by_name = {"input": self.generation.prompt_tokens, "output": tokens}
        fields = "".join(f',"num_{name}_tokens":{counts_by_name[name]}' for name in self.counts).encode()
        model = self.header.model.encode()
        return b'{"model_name":"%b","model_version":"1"%b,"text_output":"%b"}' % (model, fields, text)


class TritonStream(_TritonCompletion):
    """One response per token."""

    def __init__(self, *args: Any, counts: tuple[str, ...], **header: Any) -> None:
        super().__init__(*args, **header)
        self.counts = counts
        self.connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send the token's event."""
        event = chunk(b"data: " + self.body(self.next_word(), tokens=1) + b"\n\n")
        self.connection.send(event + STREAM_END if last else event)
        if last:
            self.connection.finish()


class TritonResponse(_TritonCompletion):
    """One response at the end."""

    def __init__(self, *args: Any, counts: tuple[str, ...], **header: Any) -> None:
        super().__init__(*args, **header)
        self.counts = counts

    def token(self, *, last: bool) -> None:
        """Collect the word; respond after the last one."""
        self.next_word()
        if last:
            self.connection.respond(200, self.body(self.text, tokens=self.sent))


def _inputs(model: str) -> dict[str, str]:
    return {**_INPUTS, LIMIT_INPUTS[model]: "INT32"}


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
