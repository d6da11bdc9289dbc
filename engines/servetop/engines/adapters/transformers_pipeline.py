"""A baseline without continuous batching: servetop's own thin server over transformers' `generate`.

`servers/pipeline_server.py` runs in the Python that has transformers. It collects requests into a padded batch
(`--batching dynamic`), or serves them one by one (`--batching none`); options after `--` are passed to it.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence

from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.core.system.package_data import package_path
from servetop.engines.adapters.engine_flags import agreed, flag_value, with_flags
from servetop.engines.adapters.launch_argv import refuse_containers
from servetop.engines.adapters.transformers import QUIET, TransformersEngine, python_of
from servetop.engines.control.control_client import HttpResult, HttpResults
from servetop.engines.dialects.dialect_registry import OPENAI_ENDPOINTS
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.metrics.metrics_reader import MetricMap, gauge
from servetop.engines.server_facts import ServerFacts

BATCHING = ("dynamic", "none")
OWNER = b'"servetop-pipeline"'
"""The `owned_by` field of its models."""
SCRIPT = "adapters/servers/pipeline_server.py"
_SERIES = {
    "running": "requests_running",
    "waiting": "requests_waiting",
    "max_num_seqs": "max_num_seqs",
    "requests_finished_total": "requests_finished_total",
    "prompt_tokens_total": "prompt_tokens_total",
    "generation_tokens_total": "generation_tokens_total",
}
_BOOT = re.compile(r"servetop pipeline: \w+ batching of (\d+), transformers (\S+)")


class PipelineEngine(Engine):
    """Sends each completion as a whole when its batch is complete: TTFT is then the full latency, without ITL."""

    name = "transformers-pipeline"
    title = "transformers pipeline"
    endpoints: Mapping[str, str] = {name: OPENAI_ENDPOINTS[name] for name in ("completions", "chat")}
    metric_map = MetricMap(fields={name: gauge(f"servetop_pipeline_{series}") for name, series in _SERIES.items()})
    metrics_caveat = (
        "completions are sent as a whole when their batch is complete: TTFT is the full latency of a request"
    )
    continuous_usage = True
    batch_size_help = "requests in a padded batch (--max-num-seqs); only a restart changes it"
    package = "transformers"
    programs = ("transformers",)
    install_help = TransformersEngine.install_help
    failures = TransformersEngine.failures
    stop_signal = signal.SIGTERM

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command; EngineError without a Python that has transformers, UsageError for unknown batching."""
        refuse_containers(config, self.title)
        extra = config.extra_args
        kind = flag_value(extra, "--batching")
        if kind is not None and kind not in BATCHING:
            raise UsageError(
                f"--batching {kind!r}: give {' or '.join(BATCHING)}; --engine transformers batches continuously"
            )
        host = flag_value(extra, "--host") or "127.0.0.1"
        flags: dict[str, object] = {
            "--host": host,
            "--port": port,
            "--max-num-seqs": agreed(config.max_num_seqs, extra, "--max-num-seqs"),
        }
        return LaunchCommand(
            argv=(
                python_of(config.command),
                str(package_path("servetop.engines", SCRIPT)),
                self.resolve_model(config.model),
                *with_flags(extra, flags),
            ),
            env={name: value for name, value in QUIET.items() if name not in os.environ},
            host="127.0.0.1" if host == "0.0.0.0" else host,
            port=port,
        )

    def resolve_model(self, model: str) -> str:
        return TransformersEngine().resolve_model(model)

    def match_score(self, results: HttpResults) -> int:
        """Match the `owned_by` field of the listed models."""
        models = results.get("/v1/models", HttpResult())
        return 2 if models.ok and OWNER in models.body else 0

    def boot_facts(self, lines: Sequence[str]) -> ServerFacts:
        """Read the batch size and version from the start-up log."""
        found = next((match for line in lines if (match := _BOOT.search(line))), None)
        return ServerFacts(max_num_seqs=int(found[1]), version=found[2]) if found else ServerFacts()
