"""llama.cpp's metrics: counters and gauges from `/metrics`, and the KV cache from `/slots`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from servetop.core.bounds import LARGEST_VALUE
from servetop.core.events import EngineSample
from servetop.engines.control.control_client import parsed_json
from servetop.engines.metrics.metrics_reader import (
    GAUGES,
    MetricMap,
    Pages,
    counter,
    gauge,
    not_exported,
    with_derived_kv_usage,
)
from servetop.engines.server_facts import ServerFacts

SLOTS = "/slots"
AUTOMATIC_SLOTS = 4
"""The default number of slots, which then share one KV cache."""

_PAGE = MetricMap(
    fields={
        "running": gauge("llamacpp:requests_processing"),
        "waiting": gauge("llamacpp:requests_deferred"),
        "prompt_tokens_total": counter("llamacpp:prompt_tokens"),
        "prefix_cache_hits_total": counter("llamacpp:prompt_tokens_cached"),
        "generation_tokens_total": counter("llamacpp:tokens_predicted"),
    }
)
_EXPORTED = (
    *_PAGE.fields,
    "prefix_cache_queries_total",
    "kv_blocks_used",
    "kv_blocks_total",
    "kv_usage",
    "max_num_seqs",
)


@dataclass(frozen=True, slots=True)
class LlamaCppPages:
    """Reads both pages, with one token per block. Only busy slots use KV memory; an idle slot's old prompt is cache."""

    shared: bool | None = None
    """All slots share one KV cache (`--kv-unified`); None: unknown, as for an attached server."""

    @property
    def paths(self) -> Sequence[str]:
        """Both paths; if `/slots` is turned off, only the KV cache is unknown."""
        return (_PAGE.path, SLOTS)

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """Return None if the first page is not llama.cpp's."""
        sample = _PAGE.sample(pages, start=start, end=end)
        if sample is None:
            return None
        slots = _slots(pages)
        busy = [slot for slot in slots if slot.get("is_processing") is True]
        tokens = [_count(slot, "n_prompt_tokens") for slot in busy]  # includes the completion so far
        return with_derived_kv_usage(
            replace(
                _with_cached_prompts(sample),
                kv_blocks_used=float(sum(tokens)) if slots else None,
                kv_blocks_total=self._tokens(slots),
                max_num_seqs=float(len(slots)) if slots else None,
            )
        )

    def facts(self, pages: Pages) -> ServerFacts:
        """Read the number of slots and their size."""
        slots = _slots(pages)
        total = self._tokens(slots)
        return ServerFacts(
            kv_blocks_total=None if total is None else round(total),
            block_size=1 if slots else None,
            max_num_seqs=len(slots) or None,
        )

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """Return the fields on neither page; without pages, those that llama.cpp never exports."""
        if not pages:
            return tuple(name for name in GAUGES if name not in _EXPORTED)
        return not_exported(self.sample(pages, start=0.0, end=0.0))

    def _tokens(self, slots: Sequence[dict[str, Any]]) -> float | None:
        """Size of the KV cache; a slot reports its part or all of a shared cache, and does not indicate which."""
        parts = [_count(slot, "n_ctx") for slot in slots]
        if not parts or (self.shared is None and len(parts) == AUTOMATIC_SLOTS):
            return None
        return float(max(parts) if self.shared else sum(parts)) or None


def _with_cached_prompts(sample: EngineSample) -> EngineSample:
    """Add the cached prompt tokens, which llama.cpp counts apart, to the computed ones."""
    computed, found = sample.prompt_tokens_total, sample.prefix_cache_hits_total
    if computed is None or found is None:
        return sample
    return replace(sample, prompt_tokens_total=computed + found, prefix_cache_queries_total=computed + found)


def _slots(pages: Pages) -> list[dict[str, Any]]:
    found = parsed_json(pages.get(SLOTS, b""))
    return [slot for slot in found if isinstance(slot, dict)] if isinstance(found, list) else []


def _count(slot: dict[str, Any], name: str) -> int:
    value = slot.get(name)
    return value if type(value) is int and 0 < value <= LARGEST_VALUE else 0
