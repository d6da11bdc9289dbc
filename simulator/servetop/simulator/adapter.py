"""The simulator as an engine plug-in: a server process whose batch size changes at run time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from servetop.core.config import EngineConfig
from servetop.core.system.own_python import python_argv
from servetop.engines.adapters.engine_flags import agreed, flag_value, with_flags
from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import BatchSizeChange, CacheReset, Engine, LaunchCommand, package_version
from servetop.engines.metrics.metrics_reader import CacheInfo, MetricMap, gauge
from servetop.engines.metrics.request_outcomes import request_outcomes
from servetop.engines.metrics.vllm_metrics import VLLM_FIELDS
from servetop.engines.process.startup_failures import KnownFailure
from servetop.engines.server_facts import ServerFacts
from servetop.simulator.model.profile_files import load_model

CONFIG = "/servetop/config"
SERVER = "servetop.cli.serve_process"
"""The module that the engine process runs."""


class SimEngine(Engine):
    """vLLM's dialect and metric names, without a null block; `/servetop/config` identifies and configures it."""

    name = "sim"
    title = "servetop simulator"
    probe_paths: Sequence[str] = (CONFIG, "/v1/models")
    metric_map = MetricMap(
        fields={
            **VLLM_FIELDS,
            **request_outcomes("vllm:request_success"),
            "max_num_seqs": gauge("servetop_sim_max_num_seqs"),
        },
        cache=CacheInfo(name="vllm:cache_config_info", blocks="num_gpu_blocks", block_size="block_size"),
    )
    continuous_usage = True
    batch_size_help = "sequences in a batch; changes at once, while it runs"
    install_help = "part of servetop"
    changes_batch_size_live = True
    cache_reset = CacheReset("/reset_prefix_cache", refused_by=re.compile(rb'"success": *false'))
    stop_grace_period = 3.0
    failures = (KnownFailure.of(r"^servetop: (?P<what>.+?)(?: \(see servetop --help\))?$", "{what}"),)

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command of the simulator; UsageError for a model without a profile."""
        extra = config.extra_args
        if not config.command:
            load_model(flag_value(extra, "--model") or config.model)
        flags = {
            "--host": "127.0.0.1",
            "--port": port,
            "--model": config.model or None,
            "--max-num-seqs": agreed(config.max_num_seqs, extra, "--max-num-seqs"),
        }
        host = flag_value(extra, "--host") or "127.0.0.1"
        return LaunchCommand(
            argv=(*(config.command or python_argv("-m", SERVER)), *with_flags(extra, flags)),
            host="127.0.0.1" if host == "0.0.0.0" else host,
            port=port,
        )

    def installed(self) -> str | None:
        """Return servetop's version, or `yes` in a checkout that is not installed."""
        return package_version("servetop") or "yes"

    def match_score(self, results: HttpResults) -> int:
        """Match by the route `/servetop/config`, which vLLM does not have."""
        return 3 if "engine_profile" in _config(results) else 0

    def facts(self, results: HttpResults) -> ServerFacts:
        """Report the simulated engine generation, such as `vllm-0.2.1`, as the version."""
        config = _config(results)
        if "engine_profile" not in config:
            return super().facts(results)
        config_facts = ServerFacts(
            version=str(config["engine_profile"]),
            kv_blocks_total=config.get("kv_blocks"),
            block_size=config.get("block_size"),
            max_num_seqs=config.get("max_num_seqs"),
        )
        return config_facts.merged_with(super().facts(results))

    def batch_size_change(self, max_num_seqs: int) -> BatchSizeChange:
        """Return the request that changes the batch-size limit from the next iteration on."""
        return BatchSizeChange(CONFIG, {"max_num_seqs": max_num_seqs})


def _config(results: HttpResults) -> dict[str, Any]:
    data = results[CONFIG].json() if CONFIG in results else None
    return data if isinstance(data, dict) else {}
