"""The LoRA adapters of vLLM that run and wait, which it exports as labels of one series.

Each combination of adapters is a row of its own whose value is the time when it was last true, and rows stay on the
page; so only the newest row counts. Its adapters become series with the value 1.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from servetop.engines.metrics.prometheus_text import scan

SOURCE = "vllm:lora_requests_info"
_SOURCE = SOURCE.encode()
RUNNING, WAITING, MOST = f"{SOURCE}:running", f"{SOURCE}:waiting", f"{SOURCE}:max"
ADAPTER = "adapter"
"""The label with the name of an adapter."""
_LABELS = {RUNNING: "running_lora_adapters", WAITING: "waiting_lora_adapters"}
_MOST_ADAPTERS = 64
"""Adapters of each state that are read."""


def lora_rows(page: bytes, wanted: Container[str]) -> Iterator[tuple[str, str, float]]:
    """Yield series, adapter and value of the newest row: 1 for each adapter, and how many adapters a batch may have."""
    if RUNNING not in wanted or _SOURCE not in page:
        return
    rows = scan(page.decode("utf-8", errors="replace"), (SOURCE,)).get(SOURCE, ())
    newest = max(rows, key=lambda row: row.value, default=None)
    if newest is None:
        return
    labels = newest.labels
    for series, label in _LABELS.items():
        names = dict.fromkeys(name.strip() for name in labels.get(label, "").split(","))
        yield from ((series, name, 1.0) for name in list(names)[:_MOST_ADAPTERS] if name)
    if labels.get("max_lora", "").isdecimal():
        yield MOST, "", float(labels["max_lora"][:9])
