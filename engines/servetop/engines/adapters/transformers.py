"""Hugging Face transformers: `transformers serve`, with continuous batching unless it is turned off after `--`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.system.own_python import python_argv
from servetop.engines.adapters.engine_flags import agreed, flag_value, with_flags
from servetop.engines.adapters.launch_argv import checked, safe_path
from servetop.engines.adapters.model_names import resolve_model
from servetop.engines.control.control_client import HttpResult, HttpResults
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.process.startup_failures import HUB_FAILURES, KnownFailure
from servetop.engines.server_facts import ServerFacts

_MODULE = "transformers.cli.transformers"
_POSTED = ("/load_model", "/reset")
"""Paths of `transformers serve` alone, where a GET returns 405."""
QUIET = {"PYTHONUNBUFFERED": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}


class TransformersEngine(Engine):
    """Tested with a real server of 5.19; docs/engines/transformers.md."""

    name = "transformers"
    title = "transformers"
    probe_paths: Sequence[str] = (*_POSTED, "/health", "/metrics")
    endpoints: Mapping[str, str] = {
        "completions": "servetop.engines.dialects.transformers_api:TransformersCompletionsDialect",
        "chat": "servetop.engines.dialects.transformers_api:TransformersChatDialect",
    }
    takes_token_ids = False
    batch_size_help = (
        "no limit of sequences; --cb-max-batch-tokens limits the tokens of a step, --cb-num-blocks the KV cache"
    )
    package = "transformers"
    programs = ("transformers",)
    install_help = "pip install 'transformers[serving]' accelerate, or --engine-command /path/to/transformers"
    stop_signal = signal.SIGTERM
    """SIGINT hangs after the use of continuous batching."""
    log_filter = re.compile(rb'"(GET|POST) \S+ HTTP/1\.[01]" 2\d\d|\[Request received\]|GET /(metrics|version)')
    failures = (
        KnownFailure.of(
            r"requires `accelerate`", "the Python package accelerate is missing in its environment: pip install it"
        ),
        *HUB_FAILURES,
        KnownFailure.of(r"No such option: (?P<what>\S+)", "transformers serve has no option {what}"),
        KnownFailure.of(r"error: unrecognized arguments: (?P<what>.+)", "it has no option {what}"),
    )

    def __init__(self) -> None:
        self._model = ""

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command; EngineError if it is not found, UsageError for a batch size, which it does not have."""
        extra = config.extra_args
        if flag_value(extra, "--batching") is not None:
            raise UsageError("--batching is an option of servetop's own server: give --engine transformers-pipeline")
        if agreed(config.max_num_seqs, extra, "--max-num-seqs") is not None:
            raise UsageError(
                "transformers serve has no limit of sequences in a batch: leave out --max-num-seqs, "
                "or give --cb-max-batch-tokens after --"
            )
        self._model = self.resolve_model(config.model)
        host = flag_value(extra, "--host") or "127.0.0.1"
        chosen = any(arg.endswith("continuous-batching") for arg in extra)
        serve = ["transformers", "serve"] if config.launcher and not config.command else _serve(config.command)
        argv = [*serve, self._model, *([] if chosen else ["--continuous-batching"])]
        flags: dict[str, object] = {"--host": host, "--port": port}
        return LaunchCommand(
            argv=(*argv, *with_flags(extra, flags)),
            env={name: value for name, value in QUIET.items() if name not in os.environ} | safe_path(argv, config),
            host="127.0.0.1" if host == "0.0.0.0" else host,
            port=port,
        )

    def resolve_model(self, model: str) -> str:
        return resolve_model(model)

    def match_score(self, results: HttpResults) -> int:
        """Match by its POST-only paths and missing metrics, because it reports no name."""
        known = all(results.get(path, HttpResult()).status == 405 for path in _POSTED)
        metrics = results.get("/metrics", HttpResult())
        return 2 if known and results.get("/health", HttpResult()).ok and metrics.status == 404 else 0

    def facts(self, results: HttpResults) -> ServerFacts:
        """Read the models: that of a started server, because it lists all models in its cache."""
        return ServerFacts(models=(self._model,) if self._model else ()).merged_with(super().facts(results))


def _serve(command: Sequence[str]) -> list[str]:
    """Return the beginning of the command line, through `serve`."""
    argv = checked(command) or _here()
    last = Path(argv[-1]).name
    if argv == [*python_argv()] or re.fullmatch(r"python[\d.]*", last):
        return [*argv, "-m", _MODULE, "serve"]
    return [*argv, "serve"] if last == "transformers" else argv


def python_of(command: Sequence[str]) -> str:
    """Return the Python that has transformers: the configured one, or the one beside the configured command."""
    argv = checked(command) or _here()
    named = Path(shutil.which(argv[0]) or argv[0])
    if re.fullmatch(r"python[\d.]*", named.name):
        return str(named)
    beside = named.with_name("python")
    if not beside.exists():
        raise EngineError(f"there is no Python beside {named}: set --engine-command to the one that has transformers")
    return str(beside)


def _here() -> list[str]:
    """Return the installed script, else this Python."""
    script = installed("transformers")
    return [script] if script is not None else [*python_argv()]


def installed(name: str) -> str | None:
    """Return the script on the PATH or beside this Python; None if only the package is installed.

    EngineError if neither is installed.
    """
    beside = Path(sys.executable).with_name(name)
    script = shutil.which(name) or (str(beside) if os.access(beside, os.X_OK) else None)
    spec = find_spec(name) if script is None else None
    if script is None and (spec is None or spec.origin is None):
        raise EngineError(
            "transformers is not installed in this environment: pip install 'transformers[serving]' accelerate, "
            "or set --engine-command to a Python that has it"
        )
    return script
