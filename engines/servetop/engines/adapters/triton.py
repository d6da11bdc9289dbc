"""Triton Inference Server with a TensorRT-LLM model: `tritonserver --model-repository=FOLDER`."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines.adapters.engine_flags import agreed, flag_value, with_flags
from servetop.engines.adapters.launch_argv import program_argv
from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.metrics.metrics_source import with_port
from servetop.engines.metrics.triton_metrics import TritonPages
from servetop.engines.process.ports import free_port, port_holder, port_is_free
from servetop.engines.process.startup_failures import KnownFailure
from servetop.engines.server_facts import ServerFacts

SERVER = "/v2"
_CONFIGS = {name: f"/v2/models/{name}/config" for name in ("ensemble", "tensorrt_llm_bls", "tensorrt_llm")}
"""Config paths of the usual models with text input; Triton lists its models only on a POST."""
_HTTP_PORT, _METRICS_AFTER = 8000, 2
_ADDRESSES = ("--http-address", "--grpc-address", "--metrics-address")
_IN_CONTAINERS = "/opt/tritonserver/bin/tritonserver"


class TritonEngine(Engine):
    """Tested with a real server of tritonserver 2.51 and a model that stands in for TensorRT-LLM (docs/engines)."""

    name = "triton-tensorrt-llm"
    title = "Triton (TensorRT-LLM)"
    ready_path = "/v2/health/ready"
    probe_paths: Sequence[str] = (SERVER, *_CONFIGS.values())
    endpoints: Mapping[str, str] = {"generate": "servetop.engines.dialects.triton_generate:TritonDialect"}
    takes_token_ids = False
    port_flag = "--http-port"
    batch_size_flag = "--triton-max-batch-size"
    batch_size_help = "set in the model's config (triton_max_batch_size); only a restart changes it"
    programs = ("tritonserver", _IN_CONTAINERS)
    install_help = "NVIDIA's container tritonserver-…-trtllm-python-py3, or --engine-command for another tritonserver"
    metrics_off_help = "give the URL of Triton's metrics with --metrics-url (usually two ports above its HTTP port)"
    stop_signal = signal.SIGTERM
    log_filter = None
    stop_grace_period = 35.0
    """Longer than its own timeout of 30 s for running requests (--exit-timeout-secs)."""
    failures = (
        KnownFailure.of(r"(Socket '[^']+' already in use|address already in use)", "one of its ports is taken: {line}"),
        KnownFailure.of(
            r"failed to (stat|poll|open) .*(model.repository|No such file)", "there is no model repository: {line}"
        ),
        KnownFailure.of(r"failed to load '(?P<model>[^']+)' version \d+: (?P<why>.+)", "model {model}: {why}"),
        KnownFailure.of(r"error: creating server: (?P<why>.+)", "{why}"),
        KnownFailure.of(r"unrecognized option '(?P<what>[^']+)'", "it rejects its option {what}"),
    )

    def __init__(self) -> None:
        self._models: tuple[str, ...] = ()

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command for the model repository `config.model`; UsageError for a batch size, which it lacks."""
        extra, program = config.extra_args, _IN_CONTAINERS if shutil.which(_IN_CONTAINERS) else "tritonserver"
        server = program_argv(config, program, title=self.title, how=self.install_help)
        if config.max_num_seqs is not None:
            raise UsageError(
                "tritonserver has no option for the batch size: set triton_max_batch_size in the model's config "
                "and leave out --max-num-seqs"
            )
        metrics = _given(extra, "--metrics-port") or _free_beside(port)
        grpc = _given(extra, "--grpc-port") or _free_beside(port, metrics)
        repository = flag_value(extra, "--model-repository") or self.resolve_model(config.model)
        self._models = _models_with_text(repository)
        flags: dict[str, object] = {
            "--model-repository": repository,
            **dict.fromkeys(_ADDRESSES, "127.0.0.1"),
            "--http-port": port,
            "--grpc-port": grpc,
            "--metrics-port": metrics,
        }
        host = flag_value(extra, "--http-address") or "127.0.0.1"
        return LaunchCommand(
            argv=(*server, *with_flags(extra, flags)),
            host="127.0.0.1" if host == "0.0.0.0" else host,
            port=port,
            metrics_port=metrics,
        )

    def resolve_model(self, model: str) -> str:
        """Return the path of an existing folder; UsageError for anything else."""
        path = Path(model).expanduser()
        if not model or not path.is_dir():
            raise UsageError(f"there is no folder {model!r}: for Triton --model is the folder of a model repository")
        return str(path)

    def metrics(self) -> TritonPages:
        return TritonPages()

    def metrics_url(self, url: str) -> str:
        """Return the port two above the HTTP port, such as 8002 for 8000."""
        return with_port(url, (urlsplit(url).port or _HTTP_PORT) + _METRICS_AFTER)

    def match_score(self, results: HttpResults) -> int:
        """Match the server name in the metadata."""
        return 2 if _object(results, SERVER).get("name") == "triton" else 0

    def facts(self, results: HttpResults) -> ServerFacts:
        """Read the version, and those of the usual models that have a text input."""
        version = _object(results, SERVER).get("version")
        models = tuple(name for name, path in _CONFIGS.items() if _takes_text(_object(results, path))) or self._models
        return ServerFacts(version=version if isinstance(version, str) else None, models=models)

    def failure_reason(self, lines: Sequence[str]) -> str | None:
        """Return the cause of the exit, from lines without their timestamps."""
        return super().failure_reason([_PREFIX.sub("", line) for line in lines])


_PREFIX = re.compile(r"^[IWE]\d{4} [\d:.]+ \d+ [\w.]+:\d+\] ")


def _given(extra: Sequence[str], flag: str) -> int | None:
    """Return the port that the user chose; EngineError if it is taken, because Triton would crash."""
    port = agreed(None, extra, flag)
    if port is not None and not port_is_free(port):
        raise EngineError(f"port {port} ({flag}) is in use by {port_holder(port)}: give another one, or leave it out")
    return port


def _models_with_text(repository: str) -> tuple[str, ...]:
    """Return the models of a repository that have a text input; EngineError if there are none."""
    configs = sorted(Path(repository).expanduser().glob("*/config.pbtxt"))
    names = tuple(each.parent.name for each in configs if "text_input" in each.read_text(errors="replace"))
    if not names:
        raise EngineError(f"no model in {repository} accepts text: one config.pbtxt must have an input text_input")
    return names


def _takes_text(config: dict[str, Any]) -> bool:
    inputs = config.get("input")
    named = [each.get("name") for each in inputs if isinstance(each, dict)] if isinstance(inputs, list) else []
    return "text_input" in named


def _object(results: HttpResults, path: str) -> dict[str, Any]:
    data = results[path].json() if path in results else None
    return data if isinstance(data, dict) else {}


def _free_beside(*taken: int) -> int:
    while (port := free_port()) in taken:
        pass
    return port
