"""llama.cpp: `llama-server`, which serves one request per slot."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.engines.adapters.engine_flags import agreed, flag_value, with_flags
from servetop.engines.adapters.launch_argv import program_argv
from servetop.engines.control.control_client import HttpResults
from servetop.engines.dialects.dialect_registry import OPENAI_ENDPOINTS
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.metrics.llama_cpp_metrics import LlamaCppPages
from servetop.engines.process.startup_failures import KnownFailure
from servetop.engines.server_facts import ServerFacts

_LONG = {"-m": "--model", "-hf": "--hf-repo", "-np": "--parallel", "-c": "--ctx-size", "-a": "--alias"}
"""Short forms of the options that servetop sets."""
_SHARED = ("--kv-unified", "-kvu", "--kv-unified-per-slot")
_OWN = ("--no-kv-unified", "-no-kvu")
_HUB = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")
_TIME = re.compile(r"^[\d.]+ [A-Z] +")


class LlamaCppEngine(Engine):
    """Tested with a real server of 0.5.0-dev (0c1e570); docs/engines/llama.cpp.md."""

    name = "llama.cpp"
    title = "llama.cpp"
    probe_paths: Sequence[str] = ("/props", "/v1/models")
    endpoints: Mapping[str, str] = {
        "completions": OPENAI_ENDPOINTS["completions"],
        "chat": OPENAI_ENDPOINTS["chat"],
        "generate": "servetop.engines.dialects.llama_cpp_completion:LlamaCppDialect",
    }
    tokenize_field = "content"
    batch_size_flag = "--parallel"
    batch_size_help = "slots (--parallel), each with its share of --ctx-size; only a restart changes them"
    programs = ("llama-server",)
    install_help = "build or download llama-server, and put it on the PATH or set --engine-command"
    metrics_off_help = "metrics are off: start llama-server with --metrics"
    stop_signal = signal.SIGTERM
    log_filter = re.compile(
        rb"\b(slot +(get_availabl|launch_slot_|print_timing|release|update_slots)|log_server_r|done req)"
    )
    boot_patterns: Mapping[str, re.Pattern[str]] = {
        "max_num_seqs": re.compile(r"n_slots = (\d+)"),
        "max_model_len": re.compile(r"n_ctx_slot = (\d+)"),
    }
    failures = (
        KnownFailure.of(
            r"couldn't bind HTTP server socket", "its port was taken by another process: choose another with --port"
        ),
        KnownFailure.of(
            r"failed to open GGUF file '(?P<file>[^']+)'",
            "there is no model file {file}: give --model with the path of a GGUF file",
        ),
        KnownFailure.of(
            r"invalid magic|unknown model architecture|gguf_init_from_\w+: .*", "not a model that it can load: {line}"
        ),
        KnownFailure.of(
            r"failed to allocate|unable to allocate|cudaMalloc failed",
            "not enough memory: give a smaller --ctx-size, --parallel or model ({line})",
        ),
        KnownFailure.of(r"error: (?P<what>invalid argument: .+)", "llama-server rejects its command line: {what}"),
        KnownFailure.of(r"failed to load model", "the model cannot be loaded: {line}"),
    )

    def __init__(self) -> None:
        self._shared: bool | None = None

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command, always with `--metrics`; EngineError if llama-server is not found."""
        extra = [_LONG.get(arg, arg) for arg in config.extra_args]
        slots = agreed(config.max_num_seqs, extra, "--parallel")
        host = flag_value(extra, "--host") or "127.0.0.1"
        named = flag_value(extra, "--model") or flag_value(extra, "--hf-repo")
        server = program_argv(config, "llama-server", title=self.title, how=self.install_help)
        flags = {"--host": host, "--port": port, "--parallel": slots}
        argv = [*server, *([] if named else self._model(config.model)), *with_flags(extra, flags)]
        self._shared = any(arg in extra for arg in _SHARED) or (slots is None and not any(arg in extra for arg in _OWN))
        return LaunchCommand(
            argv=(*argv, *(() if "--metrics" in extra else ("--metrics",))),
            host="127.0.0.1" if host == "0.0.0.0" else host,
            port=port,
        )

    def metrics(self) -> LlamaCppPages:
        """Return a reader; only for a started server is it known whether the slots share one KV cache."""
        return LlamaCppPages(self._shared)

    def resolve_model(self, model: str) -> str:
        """Accept a GGUF file, or a hub repository as `user/name` or `user/name:quantisation`; UsageError for others."""
        path = Path(model).expanduser()
        if path.is_file():
            return str(path)
        if _HUB.fullmatch(model) and not model.endswith(".gguf") and not path.exists():
            return model
        raise UsageError(
            f"there is no model file {model}: llama.cpp takes the path of a GGUF file, or user/repository of the hub"
        )

    def _model(self, model: str) -> list[str]:
        resolved = self.resolve_model(model)
        return ["--model" if Path(resolved).is_file() else "--hf-repo", resolved]

    def match_score(self, results: HttpResults) -> int:
        """Match its properties page, or the `owned_by` field of its models."""
        models = results.get("/v1/models")
        owned = models is not None and models.ok and b'"llamacpp"' in models.body
        return 2 if owned or ("total_slots" in _props(results)) else 0

    def facts(self, results: HttpResults) -> ServerFacts:
        """Read its build, its slots and the tokens per slot."""
        props = _props(results)
        settings = props.get("default_generation_settings")
        length = settings.get("n_ctx") if isinstance(settings, dict) else None
        slots, build = props.get("total_slots"), props.get("build_info")
        own = ServerFacts(
            version=build if isinstance(build, str) else None,
            max_model_len=length if isinstance(length, int) else None,
            max_num_seqs=slots if isinstance(slots, int) else None,
        )
        return own.merged_with(super().facts(results))

    def failure_reason(self, lines: Sequence[str]) -> str | None:
        """Return the cause of the exit, from lines without their timestamps."""
        return super().failure_reason([_TIME.sub("", line) for line in lines])


def _props(results: HttpResults) -> dict[str, Any]:
    data = results["/props"].json() if "/props" in results else None
    return data if isinstance(data, dict) else {}
