"""TensorRT-LLM: `trtllm-serve MODEL`, with an options file that enables iteration statistics."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.engines.adapters.engine_flags import agreed, flag_value, reachable, with_flags, without_flag
from servetop.engines.adapters.launch_argv import program_argv
from servetop.engines.adapters.model_names import resolve_model
from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import Engine, LaunchCommand, package_version
from servetop.engines.metrics.tensorrt_llm_metrics import ITERATIONS, PROMETHEUS, TensorRtLlmPages
from servetop.engines.process.startup_failures import HUB_FAILURES, KnownFailure
from servetop.engines.server_facts import is_older

PROGRAM = "trtllm-serve"
_FILE_FLAGS = ("--extra_llm_api_options", "--config")
_PERF_SINCE = "1.1"
"""The first version with the option `return_perf_metrics`; older ones reject unknown options."""
_METRICS_OPTIONS = ("enable_iter_perf_stats", "return_perf_metrics")


class TensorRtLlmEngine(Engine):
    """Versions 0.17 to 1.2, tested only against the emulated API (docs/engines/tensorrt-llm.md)."""

    name = "tensorrt-llm"
    title = "TensorRT-LLM"
    probe_paths: Sequence[str] = ("/version", "/v1/models", PROMETHEUS)
    oldest_version = "0.17"
    metrics_off_help = "metrics are off: put enable_iter_perf_stats: true into its --extra_llm_api_options file"
    metrics_caveat = (
        "TensorRT-LLM reports each iteration once, and nothing while idle: its gauges are as old as the panels show, "
        "its counters move when a request ends, and another reader of its /metrics takes iterations away"
    )
    scrape_timeout = 3.0
    """Longer than the 2 s for which its metrics page waits for an iteration."""
    batch_size_flag = "--max_batch_size"
    batch_size_help = (
        "requests in a batch (--max_batch_size); only a restart changes it, and its own tuner may lower it"
    )
    package = "tensorrt-llm"
    programs = (PROGRAM,)
    install_help = (
        "pip install tensorrt-llm on a machine with an NVIDIA GPU, or --engine-command for another environment"
    )
    stop_grace_period = 20.0
    boot_patterns: Mapping[str, re.Pattern[str]] = {
        "version": re.compile(r"TensorRT[- ]LLM version: (\d[\w.+]*)"),
        "kv_blocks_total": re.compile(r"Number of blocks in KV cache primary pool: (\d+)"),
        "block_size": re.compile(r"Number of tokens per block: (\d+)"),
    }
    failures = (
        *HUB_FAILURES,
        KnownFailure.of(r"No GPU devices found", "it needs an NVIDIA GPU and finds none on this machine"),
        KnownFailure.of(r"Failed to bind socket", "its port was taken by another process: choose another with --port"),
        KnownFailure.of(r"^Error: (?P<what>No such option.+|Invalid value.+)", "it rejects its command line: {what}"),
        KnownFailure.of(
            r"Extra inputs are not permitted|extra fields not permitted",
            "its options file has an option that this version does not support: see the log",
        ),
        KnownFailure.of(
            r"no free GPU memory|insufficient.*KV cache|Max tokens in KV cache.* is (too )?small",
            "no GPU memory is left for the KV cache: change --kv_cache_free_gpu_memory_fraction after -- ({line})",
        ),
    )

    def __init__(self) -> None:
        self._counting = False

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command, with a copy of the user's options file to which the metrics options are added.

        In a container, which would not see the copy, the user's own file is used. `extra_args` take precedence.
        EngineError if trtllm-serve is not found, UsageError for an unreadable options file.
        """
        argv = program_argv(config, PROGRAM, title=self.title, how=self.install_help)
        extra = list(config.extra_args)
        if config.launcher:
            return self._command(argv, config, extra=extra, port=port)
        given = next((value for flag in _FILE_FLAGS if (value := flag_value(extra, flag)) is not None), None)
        for flag in _FILE_FLAGS:
            extra = without_flag(extra, flag)
        extra += ["--extra_llm_api_options", self._options(given)]
        return self._command(argv, config, extra=extra, port=port)

    def _command(self, argv: Sequence[str], config: EngineConfig, *, extra: Sequence[str], port: int) -> LaunchCommand:
        flags = {
            "--host": "127.0.0.1",
            "--port": port,
            "--max_batch_size": agreed(config.max_num_seqs, extra, self.batch_size_flag),
        }
        return LaunchCommand(
            argv=(*argv, self.resolve_model(config.model), *with_flags(extra, flags)),
            host=reachable(flag_value(extra, "--host")),
            port=port,
        )

    def _options(self, given: str | None) -> str:
        """Write an options file, which is deleted with this object, and return its path."""
        version = package_version("tensorrt-llm")
        missing = _METRICS_OPTIONS[:1] if version is None or is_older(version, _PERF_SINCE) else _METRICS_OPTIONS
        text = with_options(_read(given), missing)
        number, path = tempfile.mkstemp(prefix="servetop-trtllm-", suffix=".yaml")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        weakref.finalize(self, Path(path).unlink, missing_ok=True)
        self._counting = "enable_iter_perf_stats: false" not in text
        return path

    def metrics(self) -> TensorRtLlmPages:
        """A server started by servetop reports its iterations from the first one on."""
        return TensorRtLlmPages(counting=self._counting)

    def resolve_model(self, model: str) -> str:
        return resolve_model(model)

    def match_score(self, results: HttpResults) -> int:
        """Match the `owned_by` field of its models, or either of its metrics pages."""
        models, page, iterations = (results.get(path) for path in ("/v1/models", PROMETHEUS, ITERATIONS))
        owned = models is not None and models.ok and b'"tensorrt_llm"' in models.body
        named = page is not None and page.ok and b"\ntrtllm_" in page.body
        return 2 if owned or named or (iterations is not None and b'"kvCacheStats"' in iterations.body) else 0


def with_options(text: str, names: Sequence[str]) -> str:
    """Set these options to true in an options file (YAML or JSON), unless it already sets them."""
    missing = [name for name in names if not re.search(rf"^[\s{{,]*[\"']?{name}[\"']?\s*:", text, re.MULTILINE)]
    if text.lstrip().startswith("{"):
        head, _, rest = text.partition("{")
        return head + "{" + "".join(f'"{name}": true, ' for name in missing) + rest
    ends = "" if not text or text.endswith("\n") else "\n"
    return text + ends + "".join(f"{name}: true\n" for name in missing)


def _read(path: str | None) -> str:
    try:
        return "" if path is None else Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the options file {path} cannot be read ({error}): check --extra_llm_api_options") from error
