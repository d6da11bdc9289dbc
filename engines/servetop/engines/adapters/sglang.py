"""SGLang: `python -m sglang.launch_server --model-path MODEL --enable-metrics`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from servetop.core.config import EngineConfig
from servetop.engines.adapters.engine_flags import agreed, flag_value, reachable, with_flags
from servetop.engines.adapters.launch_argv import module_argv, safe_path
from servetop.engines.adapters.model_names import resolve_model
from servetop.engines.control.control_client import HttpResults
from servetop.engines.dialects.dialect_registry import OPENAI_ENDPOINTS
from servetop.engines.engine import BatchSizeChange, CacheReset, Engine, LaunchCommand
from servetop.engines.metrics.metrics_reader import MetricMap, counter, gauge, share
from servetop.engines.process.startup_failures import HUB_FAILURES, KnownFailure
from servetop.engines.server_facts import ServerFacts

SERVER = "sglang.launch_server"
_INFOS = ("/server_info", "/get_server_info")
_REFUSED = re.compile(rb'"updated": *false|^\s*\[?\s*false')
"""The response is a list with the result of each rank, or one object in older versions."""


class SglangEngine(Engine):
    """Versions 0.4 to 0.5, tested only against the emulated API (docs/engines/sglang.md)."""

    name = "sglang"
    title = "SGLang"
    probe_paths: Sequence[str] = (*_INFOS, "/v1/models")
    endpoints: Mapping[str, str] = {
        **OPENAI_ENDPOINTS,
        "generate": "servetop.engines.dialects.sglang_generate:SglangDialect",
    }
    metric_map = MetricMap(
        fields={
            "running": gauge("sglang:num_running_reqs"),
            "waiting": gauge("sglang:num_queue_reqs"),
            "kv_blocks_used": gauge("sglang:kv_used_tokens", "sglang:num_used_tokens"),
            "kv_blocks_total": gauge("sglang:max_total_num_tokens"),
            "kv_usage": share("sglang:full_token_usage", "sglang:token_usage"),
            "preemptions_total": counter("sglang:num_retracted_requests", absent=0.0),
            "prompt_tokens_total": counter("sglang:prompt_tokens", absent=0.0),
            "generation_tokens_total": counter("sglang:generation_tokens", absent=0.0),
            "prefix_cache_hits_total": counter("sglang:cached_tokens", absent=0.0),
            "prefix_cache_queries_total": counter("sglang:prompt_tokens", absent=0.0),
            "requests_finished_total": counter("sglang:num_requests", absent=0.0),
            "first_token_seconds_total": gauge("sglang:time_to_first_token_seconds_sum"),
            "first_tokens_total": gauge("sglang:time_to_first_token_seconds_count"),
            "queue_seconds_total": gauge("sglang:queue_time_seconds_sum"),
            "queued_requests_total": gauge("sglang:queue_time_seconds_count"),
            "e2el_seconds_total": gauge("sglang:e2e_request_latency_seconds_sum"),
            "e2el_requests_total": gauge("sglang:e2e_request_latency_seconds_count"),
        },
        block_size=1,
        lazy=True,
    )
    continuous_usage = True
    changes_batch_size_live = True
    oldest_version = "0.4"
    metrics_off_help = "metrics are off: start SGLang with --enable-metrics"
    metrics_caveat = (
        "SGLang refreshes its gauges with each prefill and every 40 decode steps (--decode-log-interval), and keeps "
        "the last values while it is idle"
    )
    cache_reset = CacheReset("/flush_cache")
    batch_size_flag = "--max-running-requests"
    batch_size_help = (
        "running requests (--max-running-requests); on an attached server any number up to that one takes effect at "
        "once, a larger one needs a restart"
    )
    stop_grace_period = 20.0
    package = "sglang"
    install_help = "pip install sglang, or --engine-command for a python that has it"
    boot_patterns: Mapping[str, re.Pattern[str]] = {
        "kv_blocks_total": re.compile(r"max_total_num_tokens=(\d+)"),
        "max_num_seqs": re.compile(r"max_running_requests=(\d+)"),
        "max_model_len": re.compile(r"context_len=(\d+)"),
    }
    failures = (
        *HUB_FAILURES,
        KnownFailure.of(
            r"error: (?P<what>unrecognized arguments: .+|argument .+)", "SGLang rejects its command line: {what}"
        ),
        KnownFailure.of(
            r"Not enough memory\. Please try to increase --mem-fraction-static",
            "not enough GPU memory is left for the KV cache: raise --mem-fraction-static (after --)",
        ),
        KnownFailure.of(
            r"Capture cuda graph failed", "no memory is left for CUDA graphs: lower --mem-fraction-static after --"
        ),
    )

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command, with metrics; EngineError if SGLang is not installed. `extra_args` take precedence."""
        extra = config.extra_args
        given = flag_value(extra, "--model-path") or flag_value(extra, "--model")
        flags = {
            "--model-path": None if given else self.resolve_model(config.model),
            "--host": "127.0.0.1",
            "--port": port,
            "--max-running-requests": agreed(config.max_num_seqs, extra, self.batch_size_flag),
        }
        argv = [*module_argv(config, SERVER, title=self.title, how=self.install_help), *with_flags(extra, flags)]
        if "--enable-metrics" not in extra:
            argv.append("--enable-metrics")
        self.changes_batch_size_live = (
            False  # a sweep restarts it for each size, because it also needs those above its limit
        )
        host = reachable(flag_value(extra, "--host"))
        return LaunchCommand(argv=tuple(argv), env=safe_path(argv, config), host=host, port=port)

    def resolve_model(self, model: str) -> str:
        return resolve_model(model)

    def match_score(self, results: HttpResults) -> int:
        """Match its server information, or the `owned_by` field of its models."""
        models = results.get("/v1/models")
        owned = models is not None and models.ok and b'"sglang"' in models.body
        return 2 if owned or "mem_fraction_static" in _info(results) else 0

    def facts(self, results: HttpResults) -> ServerFacts:
        """Read `/server_info`: the arguments of its start and the limits in effect."""
        info = _info(results)
        states = info.get("internal_states")
        state = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
        limits = [
            info.get("max_running_requests"),
            state.get("effective_max_running_requests_per_dp"),
            state.get("pp_max_micro_batch_size"),
        ]
        known = [limit for limit in limits if type(limit) is int]
        keys = ("max_total_num_tokens", "context_length", "version", "page_size")
        tokens, longest, version, page = (info.get(key) for key in keys)
        own = ServerFacts(
            version=version if isinstance(version, str) else None,
            max_model_len=longest if type(longest) is int else None,
            kv_blocks_total=tokens if type(tokens) is int else None,
            block_size=1,
            cache_page=page if type(page) is int else None,
            max_num_seqs=min(known, default=None),
        )
        return own.merged_with(super().facts(results)) if info else super().facts(results)

    def boot_facts(self, lines: Sequence[str]) -> ServerFacts:
        """Read the log line of limits: `max_total_num_tokens=…, max_running_requests=…, context_len=…`."""
        facts = super().boot_facts(lines)
        return facts if facts == ServerFacts() else replace(facts, block_size=1)

    def batch_size_change(self, max_num_seqs: int) -> BatchSizeChange | None:
        """Return a change that applies from the next batch on; SGLang refuses values above the limit of its start."""
        if not self.changes_batch_size_live:
            return None
        wanted = {"server_args": {"pp_max_micro_batch_size": max_num_seqs}}
        return BatchSizeChange("/set_internal_state", wanted, refused_by=_REFUSED)


def _info(results: HttpResults) -> dict[str, Any]:
    for path in _INFOS:
        data = results[path].json() if path in results else None
        if isinstance(data, dict):
            return data
    return {}
