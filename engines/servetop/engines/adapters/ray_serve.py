"""Ray Serve LLM, which runs vLLM behind Ray's proxy: started through `servers/ray_app.py`, or attached.

Its metrics are vLLM's under other names, on the port of Ray's agent instead of that of its API.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.core.system.own_python import python_argv
from servetop.core.system.package_data import package_path
from servetop.engines.adapters.engine_flags import agreed, flag_value, with_flags
from servetop.engines.adapters.launch_argv import checked, refuse_containers
from servetop.engines.adapters.model_names import resolve_model
from servetop.engines.control.control_client import HttpResult, HttpResults
from servetop.engines.dialects.dialect_registry import OPENAI_ENDPOINTS
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.metrics.metrics_reader import CacheInfo, MetricMap, MetricSeries
from servetop.engines.metrics.metrics_source import with_port
from servetop.engines.metrics.request_outcomes import request_outcomes
from servetop.engines.metrics.vllm_metrics import VLLM_FIELDS
from servetop.engines.process.ports import free_port
from servetop.engines.process.startup_failures import KnownFailure
from servetop.engines.server_facts import ServerFacts

SCRIPT = "adapters/servers/ray_app.py"
READY_LINE = "servetop: the model is ready"
"""Printed by the script when the model's replicas are ready; Serve's HTTP proxy may respond half a minute earlier."""
USUAL_METRICS_PORT = 8080
"""As in Ray's documentation: `ray start --metrics-export-port=8080`."""
_HISTOGRAMS = ("first_token", "queue", "prefill", "tpot", "e2el")
"""Not used: Ray estimates the sums of these histograms from the middles of the buckets."""
_INTERVAL = "RAY_metrics_report_interval_ms"
"""The variable with Ray's report interval; `servers/ray_app.py` sets it to 1 s unless the user did."""
_PREFIX = re.compile(r"^(\(\w[^)]*pid=\d+[^)]*\) )?")


def _fields() -> dict[str, MetricSeries]:
    """Return vLLM's fields under Ray's metric names; Ray exports a counter only after its first increment."""
    fields = {}
    for name, series in VLLM_FIELDS.items():
        renamed = tuple(each.replace("vllm:", "ray_vllm_") for each in series.names)
        counts = name.endswith("_total") and not name.startswith("kv_")
        if not name.startswith(_HISTOGRAMS):
            fields[name] = replace(series, names=renamed, absent=0.0 if counts else None)
    return fields


class RayServeEngine(Engine):
    """Tested with a real server of 2.60 over vLLM 0.32; docs/engines/ray-serve-llm.md."""

    name = "ray-serve-llm"
    title = "Ray Serve LLM"
    ready_path = "/v1/models"
    probe_paths: Sequence[str] = ("/-/healthz", "/-/routes", "/v1/models")
    endpoints: Mapping[str, str] = {each: OPENAI_ENDPOINTS[each] for each in ("completions", "chat")}
    metric_map = MetricMap(
        fields={**_fields(), **request_outcomes("ray_vllm_request_success", absent=0.0)},
        cache=CacheInfo(
            name="ray_vllm_cache_config_info", blocks="num_gpu_blocks", block_size="block_size", reserved=1
        ),
        lazy=True,
    )
    batch_size_help = "sequences in a batch of each replica (engine_kwargs.max_num_seqs); only a restart changes it"
    package = "ray"
    install_help = "pip install 'ray[serve,llm]', and set --engine-command to that Python"
    metrics_off_help = "give the port of Ray's metrics with --metrics-url (ray start --metrics-export-port)"
    metrics_caveat = "Ray refreshes its metrics every 5 to 10 s (every second where servetop started it): they lag"
    scrape_timeout = 3.0
    scrape_period = 1.0
    idle_metrics_vanish = True
    stop_signal = signal.SIGTERM
    stop_grace_period = 30.0
    failures = (
        KnownFailure.of(
            r"Device string must not be empty", "vLLM does not find its platform: is it built for this machine?"
        ),
        KnownFailure.of(r"HFValidationError|RepositoryNotFoundError", "there is no such model: check --model ({line})"),
        KnownFailure.of(
            r"LocalEntryNotFoundError|couldn't connect to 'https://",
            "the model is not on this machine and the model hub cannot be reached: give a local folder as --model",
        ),
        KnownFailure.of(r"error: (?P<what>unrecognized arguments: .+|argument .+)", "its app: {what}"),
        KnownFailure.of(
            r"No available node types can fulfill|Insufficient resources|cannot be scheduled",
            "Ray finds no free GPU or processor: -- --accelerator cpu runs without a GPU ({line})",
        ),
    )

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command, with a separate metrics port; EngineError if Ray is not installed."""
        refuse_containers(config, self.title)
        extra = config.extra_args
        metrics = agreed(None, extra, "--metrics-port") or free_port()
        host = flag_value(extra, "--host") or "127.0.0.1"
        flags: dict[str, object] = {
            "--host": host,
            "--port": port,
            "--metrics-port": metrics,
            "--max-num-seqs": agreed(config.max_num_seqs, extra, "--max-num-seqs"),
        }
        app = _app(config.command)
        return LaunchCommand(
            argv=(*app, self.resolve_model(config.model), *with_flags(extra, flags)),
            env={} if "PYTHONUNBUFFERED" in os.environ else {"PYTHONUNBUFFERED": "1"},
            host="127.0.0.1" if host == "0.0.0.0" else host,
            port=port,
            metrics_port=metrics,
            ready_line=READY_LINE if app[-1].endswith(SCRIPT) else "",
        )

    def resolve_model(self, model: str) -> str:
        return resolve_model(model)

    def metrics_url(self, url: str) -> str:
        """Return the agent's usual port; without configuration Ray picks a random one."""
        return with_port(url, USUAL_METRICS_PORT)

    def page_age(self, *, managed: bool) -> float:
        """Return two of its agent's report intervals: those of `servers/ray_app.py`, or Ray's own longest."""
        return 2.0 if managed and _INTERVAL not in os.environ else 10.0

    def match_score(self, results: HttpResults) -> int:
        """Match the health and route pages of the Ray Serve proxy."""
        health, routes = (results.get(path, HttpResult()) for path in ("/-/healthz", "/-/routes"))
        return 2 if health.ok and health.body == b"success" and isinstance(routes.json(), dict) else 0

    def facts(self, results: HttpResults) -> ServerFacts:
        """Read its models, and the context length of the first one."""
        data = results["/v1/models"].json() if "/v1/models" in results else None
        cards = data.get("data") if isinstance(data, dict) else None
        metadata = [card.get("metadata") for card in cards or () if isinstance(card, dict)]
        lengths = [each.get("max_request_context_length") for each in metadata if isinstance(each, dict)]
        longest = next((each for each in lengths if isinstance(each, int)), None)
        return ServerFacts(max_model_len=longest).merged_with(super().facts(results))

    def failure_reason(self, lines: Sequence[str]) -> str | None:
        """Return the cause of the exit, from lines without the names of Ray's processes."""
        return super().failure_reason([_PREFIX.sub("", line) for line in lines])


def _app(command: Sequence[str]) -> list[str]:
    """Return a Python that runs servetop's app, or a complete command with the same options."""
    if not command and find_spec("ray") is None:
        raise EngineError(
            "Ray is not installed in this environment: pip install 'ray[serve,llm]', "
            "or set --engine-command to a Python that has it"
        )
    argv, script = checked(command), str(package_path("servetop.engines", SCRIPT))
    lone = len(argv) == 1 and re.fullmatch(r"python[\d.]*", Path(argv[0]).name)
    return ([*argv, script] if lone else argv) or [*python_argv(script)]
