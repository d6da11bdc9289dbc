"""Summaries by turn of a conversation, whose growing history affects prompts, latencies and prefix cache hits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_per_output_token, times_to_first_token
from servetop.analysis.columns.request_columns import source_codes
from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.request_metrics import finite, no_itl_reason
from servetop.analysis.summary.summary_types import TurnSummary
from servetop.core.arrays import FloatArray
from servetop.core.errors import RecordingError
from servetop.core.events import RequestStatus
from servetop.core.units import MS_PER_S
from servetop.recordings.read.load_requests import BLOCK, Chunks, Selection
from servetop.recordings.read.reader import RecordingReader

_NUMBERS = ("turn", "sent", "first_token_at", "done_at", "prompt_tokens", "output_tokens", "cached_tokens")
_COLUMNS = (*_NUMBERS, "status", "token_source", "chunk_times", "chunk_tokens")
_MEASURED = (*_NUMBERS, "ok", "first_tokens", "sized")


def turn_summaries(reader: RecordingReader, selection: Selection) -> tuple[TurnSummary, ...] | None:
    """Return one summary per turn, from 1, with latencies and prompts of its successful requests.

    None for a workload without conversations.
    """
    if not reader.header.config.workload.conversational:
        return None
    where, parameters = selection.where
    rows = reader.request_rows(_COLUMNS, where=f"turn > 0 AND {where}" if where else "turn > 0", parameters=parameters)
    parts = [np.empty((0, len(_MEASURED)))]
    while block := list(itertools.islice(rows, BLOCK)):
        try:
            parts.append(_measured(dict(zip(_COLUMNS, zip(*block, strict=True), strict=True))))
        except (ValueError, TypeError) as error:
            raise RecordingError(f"{reader.path} is damaged: its request rows are invalid ({error})") from error
    columns = dict(zip(_MEASURED, np.concatenate(parts).T, strict=True))
    return tuple(_turn_summary(columns, turn) for turn in np.unique(columns["turn"]))


def _measured(columns: dict[str, tuple[Any, ...]]) -> FloatArray:
    """Return the values that the summaries need, of shape (requests, columns)."""
    numbers = {name: np.array(columns[name], dtype=np.float64) for name in _NUMBERS}
    chunks = Chunks.of(columns["chunk_times"], columns["chunk_tokens"])
    sources = source_codes(columns["token_source"])
    derived = {
        "ok": np.array([each == RequestStatus.OK for each in columns["status"]], dtype=np.float64),
        "first_tokens": chunks.first_tokens,
        "sized": chunks.sized(numbers["output_tokens"], sources).astype(np.float64),
    }
    return np.stack([(numbers | derived)[name] for name in _MEASURED], axis=1)


def _turn_summary(columns: dict[str, FloatArray], turn: float) -> TurnSummary:
    in_turn = columns["turn"] == turn
    ok = {name: values[in_turn & (columns["ok"] == 1)] for name, values in columns.items()}
    ttft = times_to_first_token(ok["sent"], ok["first_token_at"])
    e2el = end_to_end_latencies(ok["sent"], ok["done_at"])
    tpot = times_per_output_token(ttft, e2el, ok["output_tokens"] - ok["first_tokens"])
    reason = no_itl_reason(ok["sized"] == 1)
    known = ~np.isnan(ok["cached_tokens"])
    prompts = ok["prompt_tokens"]
    cached = ok["cached_tokens"][known].sum() / max(1.0, prompts[known].sum()) if known.any() else np.nan
    return TurnSummary(
        turn=int(turn),
        requests=int(in_turn.sum()),
        completed=int(ok["turn"].size),
        **_statistics("ttft", ttft),
        **_statistics("tpot", np.empty(0) if reason else tpot),
        tpot_reason=reason,
        mean_prompt_tokens=finite(prompts.mean()) if prompts.size else None,
        cached_share=finite(cached),
    )


def _statistics(name: str, seconds: FloatArray) -> dict[str, float | None]:
    distribution = Distribution.of(seconds)
    values = {"mean": distribution.mean, "p50": distribution.percentile(50), "p99": distribution.percentile(99)}
    return {f"{statistic}_{name}_ms": finite(value * MS_PER_S) for statistic, value in values.items()}
