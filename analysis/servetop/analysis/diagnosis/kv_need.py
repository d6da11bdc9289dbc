"""Which fraction of the KV blocks the next request needs: of its prompt, or of all its tokens if those are reserved."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.analysis.engine_gauges import kv_usages
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram, bucket_values
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import Tick

_RESERVED = 0.75
"""How much of the output must have blocks, counted from its half, so that they are reserved for all of it."""
_MIN_OUTPUTS = 5
"""Minimum requests that ended for their lengths to be those of the workload."""


def reserved_share(held: FloatArray, *, prompt: FloatArray, output: FloatArray, token: FloatArray) -> FloatArray:
    """Return the fraction that the next request needs at an engine that reserves the blocks of whole requests.

    0 if the engine does not, or if that is unknown: sequences that hold the blocks of their tokens so far have half of
    their output on average. `held` is the fraction that a running sequence holds, `prompt` and `output` are its mean
    tokens by the time that sequences are in the batch, and `token` is the fraction that one token needs.
    """
    half, whole = ((prompt + part * output) * token for part in (0.5, 1.0))
    reserves = (output > 0) & (held >= half + _RESERVED * (whole - half))
    return np.where(reserves, np.minimum(held, whole), 0.0)


def squared_outputs(lengths: LogHistogram) -> float:
    """Return the sum of the squares of output lengths, in tokens squared; 0 without any."""
    return float(lengths.counts @ bucket_values(lengths.buckets) ** 2) if lengths.buckets.size else 0.0


def prompt_share(ticks: Sequence[Tick], blocks: FloatArray, facts: EngineFacts | None) -> FloatArray:
    """Return the fraction of the KV blocks that the mean prompt of each tick's first tokens needs; 0 if unknown."""
    size = 0 if facts is None or not facts.block_size else facts.block_size
    prompts = np.array([tick.client.prompt_tokens for tick in ticks], dtype=np.float64)
    counts = np.array([tick.client.ttft.count if tick.client.prompt_tokens else 0 for tick in ticks], dtype=np.float64)
    mean = np.divide(prompts, counts, out=np.zeros(prompts.shape), where=counts > 0)
    return np.nan_to_num(np.divide(np.ceil(mean / size) + 1, blocks)) if size else np.zeros(prompts.shape)


def token_share(blocks: FloatArray, facts: EngineFacts | None) -> FloatArray:
    """Return the fraction of the KV blocks that a token needs, by their number; NaN if it or their size is unknown."""
    size = math.nan if facts is None or not facts.block_size else float(facts.block_size)
    return np.asarray(1 / np.where(blocks > 0, blocks * size, np.nan))


def whole_request(run: TickHistory, facts: EngineFacts | None, stop: int) -> float:
    """Return the fraction that a request of mean lengths needs for all its tokens; 0 if unknown.

    By the requests that ended up to tick `stop` at one server, whose number of KV blocks is known. A watch sees none.
    """
    if run.watched:
        return 0.0
    prompts, outputs = (run.histogram(name, start=0, stop=stop) for name in ("input_len", "output_len"))
    token = _token_of(facts)
    return (prompts.mean + outputs.mean) * token if token > 0 and outputs.count >= _MIN_OUTPUTS else 0.0


def reserved_request(run: TickHistory, facts: EngineFacts | None, start: int, stop: int) -> float:
    """Return `reserved_share` by the pages of ticks `start` to `stop`, and by the requests that ended up to then.

    A watch sees no requests.
    """
    if run.watched:
        return 0.0
    prompts, outputs = (run.histogram(name, start=0, stop=stop) for name in ("input_len", "output_len"))
    names = ("running", "kv_usage", "kv_blocks_used")
    running, usage, used = (run.column(name, start=start, stop=stop) for name in names)
    token, blocks = _token_of(facts), 0.0 if facts is None else float(facts.kv_blocks_total or 0)
    kv = kv_usages(usage, used, np.full(used.shape, blocks))
    known = (running > 0) & ~np.isnan(kv)
    if not token > 0 or not known.any() or outputs.count < _MIN_OUTPUTS:
        return 0.0
    columns = (kv[known].sum() / running[known].sum(), prompts.mean, squared_outputs(outputs) / outputs.total, token)
    held, prompt, output, share = (np.array([each]) for each in columns)
    return float(reserved_share(held, prompt=prompt, output=output, token=share)[0])


def _token_of(facts: EngineFacts | None) -> float:
    """Return `token_share` of one server; 0 of several, and if it is unknown."""
    if facts is None or not facts.kv_blocks_total or not facts.block_size or len(facts.replica_urls) > 1:
        return 0.0
    return 1 / (facts.kv_blocks_total * facts.block_size)
