"""Any OpenAI-compatible server: attached only, with metrics if they have vLLM's names."""

from __future__ import annotations

from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import Engine
from servetop.engines.metrics.vllm_metrics import VLLM_METRICS


class OpenAIEngine(Engine):
    """The fallback for servers that no other adapter matches."""

    name = "openai"
    title = "OpenAI-compatible server"
    install_help = "any server: start it yourself and attach with --url"
    metric_map = VLLM_METRICS

    def match_score(self, results: HttpResults) -> int:
        """Match any server that lists models, with the lowest score."""
        return 1 if self.facts(results).models else 0
