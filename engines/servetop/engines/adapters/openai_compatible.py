"""Any server that speaks OpenAI's completions API: attached only, and with metrics only where they look like vLLM's."""

from __future__ import annotations

from servetop.engines.control.control_client import HttpResults
from servetop.engines.engine import Engine
from servetop.engines.metrics.vllm_metrics import VLLM_METRICS


class OpenAIEngine(Engine):
    """The fallback for what no other adapter claims."""

    name = "openai"
    title = "OpenAI-compatible server"
    install_help = "any server: start it yourself and attach with --url"
    metric_map = VLLM_METRICS

    def match_score(self, results: HttpResults) -> int:
        """Anything that lists models, as the last resort."""
        return 1 if self.facts(results).models else 0
