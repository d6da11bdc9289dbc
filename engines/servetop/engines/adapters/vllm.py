"""vLLM: `vllm serve MODEL`, or the older `python -m vllm.entrypoints.openai.api_server --model MODEL`."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.core.system.own_python import python_argv
from servetop.engines.adapters.engine_flags import agreed, flag_value, with_flags
from servetop.engines.adapters.launch_argv import checked, safe_path
from servetop.engines.adapters.model_names import resolve_model
from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import CacheReset, Engine, LaunchCommand
from servetop.engines.metrics.vllm_metrics import VLLM_METRICS
from servetop.engines.process.startup_failures import HUB_FAILURES, KnownFailure, error_text, first_error, last_error
from servetop.engines.server_facts import ServerFacts

API_SERVER = "vllm.entrypoints.openai.api_server"
_KEY = "VLLM_API_KEY"
"""Variable with the API key that vLLM asks its clients for."""
QUIET = {"VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
"""Environment without usage statistics and with an unbuffered log."""

_PREFIX = re.compile(r"^(?:\([^()]*pid=\d+\) )?(?:(?P<level>[A-Z]+) \d\d-\d\d \d\d:\d\d:\d\d \[?[^\]]*\] )?")
_WORKER_CAUSE = re.compile(r"Worker failed with error ['\"](?P<cause>.+?)['\"], please check the stack trace")
_CORE_DIED = re.compile(r"EngineDeadError: EngineCore encountered an issue")
"""The API server's report of a core that ended; the core's own error, if it had time to log one, precedes it."""
_NO_ERROR = ", with no error in its log: was it killed, or out of memory (dmesg)?"


class VllmEngine(Engine):
    """Versions 0.4 to 0.32 and later; tested with a real server of 0.32 (docs/engines/vllm.md)."""

    name = "vllm"
    title = "vLLM"
    metric_map = VLLM_METRICS
    continuous_usage = True
    batch_size_help = "sequences in a batch (--max-num-seqs); only a restart changes it"
    cache_reset = CacheReset(
        "/reset_prefix_cache",
        refused_by=re.compile(rb'"success": *false'),
        also=("/reset_mm_cache", "/reset_encoder_cache"),
        env={"VLLM_SERVER_DEV_MODE": "1"},
    )
    oldest_version = "0.2.7"
    metrics_off_help = "is it running with --disable-log-stats?"
    package = "vllm"
    programs = ("vllm",)
    install_help = "pip install 'servetop[vllm]', or --engine-command for another environment"
    boot_patterns: Mapping[str, re.Pattern[str]] = {
        "version": re.compile(r"(?:version |LLM engine \(v)(\d[\w.+]*)"),
        "kv_tokens_total": re.compile(r"KV cache size: ([\d,]+) tokens"),
        "kv_blocks_total": re.compile(r"# (?:GPU|CUDA|cuda|TPU|HPU) blocks: ([\d,]+)"),
        "max_model_len": re.compile(r"(?:max_seq_len=|[Uu]sing max model len )(\d+)"),
        "max_num_seqs": re.compile(r"'max_num_seqs': (\d+)"),
        "block_size": re.compile(r"'block_size': (\d+)"),
    }
    failures = (
        KnownFailure.of(
            r"error: (?P<what>unrecognized arguments: .+|argument .+)",
            "vLLM rejects its command line: {what}",
        ),
        *HUB_FAILURES,
        KnownFailure.of(
            r"max_model_len \((?P<given>\d+)\) is greater than the derived max_model_len \((?:\w+=)?(?P<most>\d+)",
            "the model supports at most {most} tokens, not {given}: give a smaller --max-model-len",
        ),
        KnownFailure.of(
            r"No available memory for the cache blocks",
            "no GPU memory is left for the KV cache: raise --gpu-memory-utilization, or choose a smaller model",
        ),
        KnownFailure.of(r"(Free|Available) memory on (node|device) .*(less than)", "not enough memory: {line}"),
        KnownFailure.of(
            r"To serve at least one request with the model's max seq len", "the KV cache is too small: {line}"
        ),
        KnownFailure.of(
            r"max_num_batched_tokens \(\d+\) must be greater than or equal to max_num_seqs \(\d+\)",
            "{line}: give a larger --max-num-batched-tokens, or a smaller --max-num-seqs",
        ),
    )

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command; EngineError if vLLM is not found. Flags in `extra_args` are not repeated."""
        extra = config.extra_args
        if os.environ.get(_KEY) and not config.api_key_env and not config.launcher:
            raise EngineError(f"{_KEY} is set, so vLLM would ask for that key: add --api-key-env {_KEY}, or unset it")
        flags = {
            "--host": "127.0.0.1",
            "--port": port,
            "--max-num-seqs": agreed(config.max_num_seqs, extra, "--max-num-seqs"),
        }
        argv = ["vllm", "serve"] if config.launcher and not config.command else _server(config.command)
        if flag_value(extra, "--model") is None:
            model = self.resolve_model(config.model)
            argv += [model] if argv[-1] == "serve" else ["--model", model]
        host = flag_value(extra, "--host") or "127.0.0.1"
        return LaunchCommand(
            argv=(*argv, *with_flags(extra, flags)),
            env={name: value for name, value in QUIET.items() if name not in os.environ} | safe_path(argv, config),
            host="127.0.0.1" if host == "0.0.0.0" else host,
            port=port,
        )

    def resolve_model(self, model: str) -> str:
        return resolve_model(model)

    def match_score(self, results: HttpResults) -> int:
        """Match by its metrics or, if they are off, by its version and the owner of its models."""
        page = results.get("/metrics")
        if page is not None and page.ok and b"\nvllm:" in page.body:
            return 2
        models = results.get("/v1/models")
        owned = models is not None and models.ok and b'"vllm"' in models.body
        return 2 if owned and self.facts(results).version else 0

    def boot_facts(self, lines: Sequence[str]) -> ServerFacts:
        """Read version, KV cache size and limits from the logs of V0 (`# GPU blocks`) and V1 (`KV cache size`)."""
        facts = super().boot_facts(lines[::-1])  # the first matching line counts
        if facts.kv_blocks_total is None and facts.kv_tokens_total and facts.block_size:
            blocks = facts.kv_tokens_total // facts.block_size
            return replace(facts, kv_blocks_total=blocks - 1)  # one is the null block
        return facts

    def failure_reason(self, lines: Sequence[str]) -> str | None:
        """Return a known cause, else the first error of a worker or engine core, else the last error."""
        bare = [_PREFIX.sub("", line) for line in lines]
        workers = [_PREFIX.sub("", line) for line in lines if (m := _PREFIX.match(line)) and m["level"] == "ERROR"]
        if (known := super().failure_reason([*workers, *bare])) is not None and known != last_error(bare):
            return known
        cause = first_error([text for text in workers if text]) or last_error(bare)
        if cause and (wrapped := _WORKER_CAUSE.search(cause)):
            return wrapped["cause"]
        if any(_CORE_DIED.search(line) for line in bare):
            own = "" if cause is None or _CORE_DIED.search(cause) else f": {cause}"
            return f"its engine core died{own or _NO_ERROR}"
        return error_text(cause) if cause and cause.startswith(("ValueError", "RuntimeError")) else cause


def _server(command: Sequence[str]) -> list[str]:
    """Return the beginning of the command line; after a last `serve` the model follows without an option."""
    if not command:
        return _installed()
    command = checked(command, program="vllm")
    last = Path(command[-1]).name
    if last == "vllm":
        return [*command, "serve"]
    if len(command) == 1 and re.fullmatch(r"python[\d.]*", last):
        return [*command, "-m", API_SERVER]
    return list(command)


def _installed() -> list[str]:
    beside = Path(sys.executable).with_name("vllm")
    script = shutil.which("vllm") or (str(beside) if os.access(beside, os.X_OK) else None)
    if script is not None:
        return [script, "serve"]
    spec = find_spec("vllm")
    if spec is None or spec.origin is None:  # a folder named vllm is not a package
        raise EngineError(
            "vLLM is not installed in this environment: pip install 'servetop[vllm]', "
            "or set --engine-command to one that has it, or try --engine sim"
        )
    return [*python_argv("-m", API_SERVER)]
