"""Detects whose metrics `--metrics-url` has by the names of their series, for a server that no adapter matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from servetop.engines.control.control_client import ServerClient
from servetop.engines.metrics.prometheus_server import (
    QUERY,
    SERVER_TIME,
    is_prometheus,
    selector,
    series_names,
)

PREFIXES: Mapping[str, str] = {
    "llamacpp:": "llama.cpp",
    "nv_trt_llm_": "triton-tensorrt-llm",
    "ray_vllm_": "ray-serve-llm",
    "sglang:": "sglang",
    "tgi_": "tgi",
    "trtllm_": "tensorrt-llm",
    "vllm:": "vllm",
}
"""Engines by the prefix of their series."""
_PAGES = ("/metrics", "/prometheus/metrics")
_NAME = re.compile(r"^[a-zA-Z_:][\w:]*", re.MULTILINE)


def owner_of(names: Iterable[str]) -> str | None:
    """Return the engine to which most of these series belong; None if none is known."""
    owners = Counter(owner for name in names for prefix, owner in PREFIXES.items() if name.startswith(prefix))
    return owners.most_common(1)[0][0] if owners else None


async def metrics_owner(client: ServerClient, *, match: str | None) -> str | None:
    """Return the engine whose metrics the client's server has; None if it has those of no known one.

    The client is closed.
    """
    try:
        results = await client.get_all((SERVER_TIME, *_PAGES))
        if not is_prometheus(results[SERVER_TIME]):
            texts = [results[path].body.decode("utf-8", errors="replace") for path in _PAGES if results[path].ok]
            return owner_of(name for text in texts for name in _NAME.findall(text))
        patterns = [f"{prefix}.+" for prefix in PREFIXES]
        query = QUERY + quote(f"count by (__name__) ({selector(patterns, match)})")
        return owner_of(series_names((await client.get_all((query,)))[query].json()))
    finally:
        await client.close()
