"""Hugging Face Text Generation Inference: `text-generation-launcher --model-id MODEL`."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.config import EngineConfig
from servetop.engines.adapters.engine_flags import agreed, flag_value, reachable, with_flags
from servetop.engines.adapters.launch_argv import program_argv
from servetop.engines.adapters.model_names import resolve_model
from servetop.engines.control.control_client import HttpResults
from servetop.engines.dialects.dialect_registry import TEXT_ENDPOINTS
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.metrics.metrics_reader import MetricMap, MetricSeries, counter, gauge
from servetop.engines.metrics.request_outcomes import request_outcomes
from servetop.engines.process.startup_failures import HUB_FAILURES, KnownFailure
from servetop.engines.server_facts import ServerFacts

LAUNCHER = "text-generation-launcher"
_BUDGET = re.compile(r"(?:Setting max batch total tokens to|Inferred max batch total tokens:) (\d+)")


def _since_used(name: str) -> MetricSeries:
    """Return a sum or count of a histogram; it is not on the page before the first request."""
    return MetricSeries((name,), absent=0.0)


class TgiEngine(Engine):
    """Versions 2.0 to 3.3, tested only against the emulated API (docs/engines/tgi.md)."""

    name = "tgi"
    title = "TGI"
    probe_paths: Sequence[str] = ("/info", "/v1/models")
    takes_token_ids = False
    endpoints: Mapping[str, str] = {**TEXT_ENDPOINTS, "generate": "servetop.engines.dialects.tgi_generate:TgiDialect"}
    metric_map = MetricMap(
        fields={
            "running": gauge("tgi_batch_current_size"),
            "waiting": gauge("tgi_queue_size"),
            "requests_finished_total": counter("tgi_request_success", absent=0.0),
            "kv_blocks_used": gauge("tgi_batch_current_max_tokens"),
            "kv_blocks_total": gauge("tgi_batch_max_total_tokens"),
            "prompt_tokens_total": _since_used("tgi_request_input_length_sum"),
            "generation_tokens_total": _since_used("tgi_request_generated_tokens_sum"),
            "queue_seconds_total": _since_used("tgi_request_queue_duration_sum"),
            "queued_requests_total": _since_used("tgi_request_queue_duration_count"),
            "e2el_seconds_total": _since_used("tgi_request_duration_sum"),
            "e2el_requests_total": _since_used("tgi_request_duration_count"),
            **request_outcomes("tgi_request_failure", absent=0.0),
        },
        block_size=1,
        lazy=True,
    )
    metrics_caveat = (
        "TGI counts tokens when a request ends, and reserves the maximum KV memory of a request when it is admitted: "
        "so it never preempts, and a shortage shows as a queue"
    )
    oldest_version = "2.0"
    batch_size_flag = "--max-batch-size"
    batch_size_help = (
        "requests in a batch (--max-batch-size); only a restart changes it. --max-concurrent-requests (128) is another "
        "limit: requests beyond it are refused (HTTP 429)"
    )
    programs = (LAUNCHER,)
    install_help = "it ships as a container: --launcher docker --image REGISTRY/huggingface/text-generation-inference"
    stop_signal = signal.SIGTERM
    stop_grace_period = 20.0
    log_filter = None
    failures = (
        *HUB_FAILURES,
        KnownFailure.of(r"error: (?P<what>unexpected argument .+|invalid value .+)", "TGI rejects its options: {what}"),
        KnownFailure.of(
            r"Not enough memory to handle (?P<tokens>\d+) prefill tokens",
            "not enough GPU memory for {tokens} prefill tokens: give a smaller --max-batch-prefill-tokens after --",
        ),
        KnownFailure.of(
            r"ArgumentValidation\(\"(?P<what>.+?)\"\)|(?P<other>`max_\w+` must be .+)", "TGI: {what}{other}"
        ),
        KnownFailure.of(r"(?P<what>Sharding is not supported .+)", "{what}: give --num-shard 1 after --"),
    )

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command; EngineError if the launcher is not found. `extra_args` take precedence."""
        extra = config.extra_args
        flags = {
            "--model-id": None if flag_value(extra, "--model-id") else self.resolve_model(config.model),
            "--hostname": "127.0.0.1",
            "--port": port,
            "--max-batch-size": agreed(config.max_num_seqs, extra, self.batch_size_flag),
        }
        argv = program_argv(config, LAUNCHER, title=self.title, how=self.install_help)
        return LaunchCommand(
            argv=(*argv, *with_flags(extra, flags)), host=reachable(flag_value(extra, "--hostname")), port=port
        )

    def resolve_model(self, model: str) -> str:
        return resolve_model(model)

    def match_score(self, results: HttpResults) -> int:
        """Match `/info`, which names the TGI router."""
        info = _info(results)
        return 2 if "text-generation-router" in str(info.get("router")) or "max_best_of" in info else 0

    def facts(self, results: HttpResults) -> ServerFacts:
        """Read `/info`; its `max_concurrent_requests` is not the size of a batch."""
        info = _info(results)
        values = {name: info.get(key) for name, key in (("version", "version"), ("model", "model_id"))}
        texts = {name: text for name, text in values.items() if isinstance(text, str)}
        longest = info.get("max_total_tokens")
        own = ServerFacts(
            version=texts.get("version"),
            models=(texts["model"],) if "model" in texts else (),
            max_model_len=longest if type(longest) is int else None,
        )
        return super().facts(results).merged_with(own)

    def boot_facts(self, lines: Sequence[str]) -> ServerFacts:
        """Read the maximum tokens of all running requests together from the start-up log."""
        budgets = [int(match[1]) for line in lines if (match := _BUDGET.search(line))]
        return ServerFacts(kv_blocks_total=budgets[-1], block_size=1) if budgets else ServerFacts()


def _info(results: HttpResults) -> dict[str, Any]:
    data = results["/info"].json() if "/info" in results else None
    return data if isinstance(data, dict) else {}
