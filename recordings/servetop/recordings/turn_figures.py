"""What each turn of the conversations met: the history grows, and with it prompts, waits and what a cache finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from servetop.core.events import FloatArray, RequestStatus
from servetop.core.units import MS_PER_S
from servetop.recordings.distribution import Distribution
from servetop.recordings.figures import finite
from servetop.recordings.reader import RecordingReader
from servetop.recordings.samples import Selection

_NUMBERS = ("turn", "sent", "first_token_at", "done_at", "prompt_tokens", "output_tokens", "cached_tokens")
_COLUMNS = (*_NUMBERS, "status")


def turn_figures(reader: RecordingReader, selection: Selection) -> dict[str, Any]:
    """`turns`: for each turn, from 1, its requests and, of those that ended well, latencies and prompts.

    Empty for a workload without conversations.
    """
    if not reader.header.config.workload.conversational:
        return {}
    where, parameters = selection.where
    rows = reader.request_rows(_COLUMNS, where=f"turn > 0 AND {where}" if where else "turn > 0", parameters=parameters)
    known = [(*row[:-1], row[-1] == RequestStatus.OK) for row in rows]
    table = np.array(known, dtype=np.float64).reshape(-1, len(_COLUMNS))
    columns = dict(zip(_COLUMNS, table.T, strict=True))
    return {"turns": [_figures(columns, turn) for turn in np.unique(columns["turn"])]}


def _figures(columns: dict[str, FloatArray], turn: float) -> dict[str, Any]:
    mine = columns["turn"] == turn
    ok = {name: values[mine & (columns["status"] == 1)] for name, values in columns.items()}
    ttft = ok["first_token_at"] - ok["sent"]
    later = np.where(ok["output_tokens"] > 1, ok["output_tokens"] - 1, np.nan)
    tpot = (ok["done_at"] - ok["first_token_at"]) / later
    told = ~np.isnan(ok["cached_tokens"])
    prompts = ok["prompt_tokens"]
    cached = ok["cached_tokens"][told].sum() / max(1.0, prompts[told].sum()) if told.any() else np.nan
    return {
        "turn": int(turn),
        "requests": int(mine.sum()),
        "completed": int(ok["turn"].size),
        **_statistics("ttft", ttft),
        **_statistics("tpot", tpot),
        "mean_prompt_tokens": finite(prompts.mean()) if prompts.size else None,
        "cached_share": finite(cached),
    }


def _statistics(name: str, seconds: FloatArray) -> dict[str, float | None]:
    pool = Distribution.of(seconds)
    values = {"mean": pool.mean, "p50": pool.percentile(50), "p99": pool.percentile(99)}
    return {f"{statistic}_{name}_ms": finite(value * MS_PER_S) for statistic, value in values.items()}
