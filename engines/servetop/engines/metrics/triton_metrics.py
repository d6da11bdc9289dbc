"""Metrics of Triton with a TensorRT-LLM model: the model's `nv_trt_llm_…`, Triton's `nv_llm_…` and `nv_inference_…`.

TensorRT-LLM writes the values of a family by position: if its runtime omits one, those after it get the wrong labels.
So contradictory numbers of the KV cache are discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from servetop.core.events import EngineSample
from servetop.engines.metrics.metrics_reader import (
    GAUGES,
    Found,
    MetricMap,
    Pages,
    found_rows,
    gauge,
    not_exported,
    value_of,
    with_derived_kv_usage,
)
from servetop.engines.metrics.request_outcomes import request_outcomes
from servetop.engines.server_facts import ServerFacts

_REQUESTS, _BLOCKS = "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics"
_FINISHED = "nv_inference_request_success"
_MODELS = ("ensemble", "tensorrt_llm_bls", "tensorrt_llm")
"""Models that count each request once; the first one on the page is used, since parts of an ensemble count it too."""

_PAGE = MetricMap(
    fields={
        "running": gauge(_REQUESTS, labels={"request_type": "scheduled"}),
        "waiting": gauge(_REQUESTS, labels={"request_type": "waiting"}),
        "max_num_seqs": gauge(_REQUESTS, labels={"request_type": "max"}),
        "kv_blocks_used": gauge(_BLOCKS, labels={"kv_cache_block_type": "used"}),
        "kv_blocks_total": gauge(_BLOCKS, labels={"kv_cache_block_type": "max"}),
        "prompt_tokens_total": gauge("nv_llm_input_token_len_sum"),
        "generation_tokens_total": gauge("nv_llm_output_token_len_sum"),
        "requests_finished_total": gauge(_FINISHED),
        **request_outcomes("nv_inference_request_failure"),
    }
)
_TOKENS_PER_BLOCK = gauge(_BLOCKS, labels={"kv_cache_block_type": "tokens_per"})
_FRACTION = gauge(_BLOCKS, labels={"kv_cache_block_type": "fraction"})


@dataclass(frozen=True, slots=True)
class TritonPages:
    """Reads Triton's page. It reports paused requests only as a short-lived gauge, so preemptions are unknown."""

    @property
    def paths(self) -> Sequence[str]:
        """The single metrics path, on a separate port."""
        return (_PAGE.path,)

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """Convert the page to a sample; None if none of Triton's series is on it."""
        sample = _PAGE.sample(pages, start=start, end=end)
        if sample is None:
            return None
        finished = _finished(pages)
        used, total = sample.kv_blocks_used, sample.kv_blocks_total
        fraction = value_of(_FRACTION, _rows(pages, _BLOCKS))
        if (used is not None and total is not None and used > total) or (fraction is not None and fraction > 1):
            sample = replace(sample, kv_blocks_used=None, kv_blocks_total=None, kv_usage=None)
        return with_derived_kv_usage(replace(sample, requests_finished_total=finished))

    def facts(self, pages: Pages) -> ServerFacts:
        """Read the KV blocks, their size and the batch-size limit."""
        sample = self.sample(pages, start=0.0, end=0.0)
        size = value_of(_TOKENS_PER_BLOCK, _rows(pages, _BLOCKS))
        if sample is None or sample.kv_blocks_total is None:
            size = None
        total, limit = (sample.kv_blocks_total, sample.max_num_seqs) if sample else (None, None)
        return ServerFacts(
            kv_blocks_total=None if total is None else round(total),
            block_size=round(size) if size else None,
            max_num_seqs=None if limit is None else round(limit),
        )

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """Return the fields not on the page; without a page, those that Triton never exports."""
        if not pages:
            return tuple(name for name in GAUGES if name not in (*_PAGE.fields, "kv_usage"))
        return not_exported(self.sample(pages, start=0.0, end=0.0))


def _finished(pages: Pages) -> float | None:
    found = _rows(pages, _FINISHED)
    counts = (value_of(gauge(_FINISHED, labels={"model": model}), found) for model in _MODELS)
    return next((count for count in counts if count is not None), None)


def _rows(pages: Pages, name: str) -> Found:
    return found_rows(pages, _PAGE.path, frozenset((name,)))
