"""A stage as a Benchmark Report 0.2.1 of llm-d, in JSON; the reports of a run have its experiment id in common."""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import numpy as np

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.summary.request_metrics import request_summary
from servetop.analysis.summary.summary_types import LatencySummary
from servetop.core.arrays import FloatArray
from servetop.core.config import RANDOM, to_data
from servetop.core.events import RequestStatus
from servetop.core.units import MS_PER_S
from servetop.recordings.read.load_requests import load_requests
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.row_formats import json_object
from servetop.reports.export.stage_rows import ExportedStage

VERSION = "0.2.1"
NOT_CARRIED = (
    "each request",
    "engine, GPU and tick samples",
    "warm-ups and cool-downs",
    "goodput",
    "wait before sending, TTFT from due",
)
"""What a report cannot hold, or servetop does not write into it."""
_PERCENTILES = {
    "min": 0, "p0p1": 0.1, "p1": 1, "p5": 5, "p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p95": 95,
    "p99": 99, "p99p9": 99.9, "max": 100,
}  # fmt: skip
"""The percentiles of the report by their names."""
_LATENCIES = {
    "ttft": ("time_to_first_token", "s"),
    "tpot": ("time_per_output_token", "s/token"),
    "itl": ("inter_token_latency", "s/token"),
    "e2el": ("request_latency", "s"),
}
"""Name and unit of each latency."""


def llmd_report(reader: RecordingReader, stage: ExportedStage) -> Iterator[str]:
    """Yield the text of the report of a stage; its statistics are those of the requests that succeeded."""
    requests = load_requests(reader, stage.selection)
    prompts = requests.prompt_tokens[~np.isnan(requests.prompt_tokens)]  # the report's load must say how long they were
    summary = request_summary(requests, goodput={}, percentiles=tuple(_PERCENTILES.values()))
    aggregate = {
        "requests": _request_counts(requests),
        "latency": {
            name: _latency(summary.latencies[metric], unit)
            for metric, (name, unit) in _LATENCIES.items()
            if math.isfinite(summary.latencies[metric].mean or math.nan)
        },
        "throughput": {
            "input_token_rate": _rate(summary.total_input_tokens / summary.duration, "tokens/s"),
            "output_token_rate": _rate(summary.output_throughput, "tokens/s"),
            "total_token_rate": _rate(summary.total_token_throughput, "tokens/s"),
            "request_rate": _rate(summary.request_throughput, "queries/s"),
        }
        if summary.completed and summary.duration
        else {},
    }
    members: dict[str, object] = {
        "version": VERSION,
        "run": _run(stage, duration=summary.duration),
        "scenario": {"stack": _stack(stage), "load": _load(stage, requests) if prompts.size else None},
        "results": {"request_performance": {"aggregate": aggregate}},
    }
    return json_object(members.items())


def _run(stage: ExportedStage, *, duration: float) -> Mapping[str, object]:
    anchor, start = stage.header.anchor, stage.stage.start or 0.0
    experiment = uuid.uuid5(uuid.NAMESPACE_OID, f"servetop {anchor.origin_ns} {anchor.wall_epoch_s!r}")
    begin, end = (datetime.fromtimestamp(anchor.wall_epoch_s + at, UTC) for at in (start, start + duration))
    return {
        "uid": str(uuid.uuid5(experiment, str(stage.stage.stage))),
        "eid": str(experiment),
        "time": {"start": begin.isoformat(), "end": end.isoformat(), "duration": f"PT{duration:.6f}S"},
        "description": stage.run.set_up.label,
    }


def _stack(stage: ExportedStage) -> list[Mapping[str, object]]:
    """Return the engine, as far as it is known: a report wants more of an accelerator than a recording may have."""
    engine = stage.header.engine
    if engine is None:
        return []
    facts = {
        "model": engine.model, "max_num_seqs": engine.max_num_seqs, "max_model_len": engine.max_model_len,
        "kv_blocks": engine.kv_blocks_total, "block_size": engine.block_size, "replicas": len(engine.replica_urls) or 1,
    }  # fmt: skip
    known = {name: value for name, value in facts.items() if value is not None}
    return [
        {
            "metadata": {"label": engine.name, "cfg_id": _hash({"version": engine.version, **known})},
            "standardized": {
                "kind": "generic", "tool": engine.title, "tool_version": engine.version or "unknown", **known
            },
            "native": {},
        }
    ]  # fmt: skip


def _load(stage: ExportedStage, requests: RequestColumns) -> Mapping[str, object]:
    header, rate, limit = stage.header, stage.stage.request_rate, stage.stage.max_concurrency
    config = to_data(header.config)
    standardized = {
        "tool": "servetop",
        "tool_version": header.versions.get("servetop", "unknown"),
        "source": "random" if header.config.workload.dataset in RANDOM else "sampled",
        "stage": stage.stage.stage,
        "input_seq_len": _length(requests.prompt_tokens),
        "output_seq_len": _length(requests.required_tokens),
        "rate_qps": rate if rate is not None and math.isfinite(rate) else None,
        "concurrency": limit,
    }
    return {
        "metadata": {"cfg_id": _hash(config), "description": stage.stage.label or None},
        "standardized": {name: value for name, value in standardized.items() if value is not None},
        "native": {"config": config},
    }


def _length(tokens: FloatArray) -> Mapping[str, object] | None:
    """Return how the lengths of the requests were distributed; None if they are not known."""
    known = tokens[~np.isnan(tokens)]
    if not known.size:
        return None
    least, most = int(known.min()), int(known.max())
    if least == most:
        return {"distribution": "fixed", "value": least}
    return {"distribution": "other", "value": float(np.mean(known, dtype=np.float64)), "min": least, "max": most}


def _request_counts(requests: RequestColumns) -> Mapping[str, object]:
    ok = requests.with_status(RequestStatus.OK)
    found = {
        "total": int(requests.due.size),
        "failures": int(requests.failed.sum()),
        "incomplete": int(requests.with_status(RequestStatus.CANCELLED).sum()),
        "input_length": _tokens(requests.prompt_tokens[ok]),
        "output_length": _tokens(requests.output_tokens[ok]),
    }
    return {name: value for name, value in found.items() if value is not None}


def _tokens(values: FloatArray) -> Mapping[str, object] | None:
    known = values[~np.isnan(values)].astype(np.float64)
    if not known.size:
        return None
    percentiles = np.percentile(known, list(_PERCENTILES.values())).tolist()
    return {
        "units": "count", "mean": float(known.mean()), "stddev": float(known.std()),
        **dict(zip(_PERCENTILES, percentiles, strict=True)),
    }  # fmt: skip


def _latency(found: LatencySummary, unit: str) -> Mapping[str, object]:
    percentiles = {name: found.percentiles[f"p{q:.12g}"] for name, q in _PERCENTILES.items()}
    values = {"mean": found.mean, "stddev": found.std, **percentiles}
    return {"units": unit, **{name: each / MS_PER_S for name, each in values.items() if each is not None}}


def _rate(value: float | None, unit: str) -> Mapping[str, object] | None:
    return None if value is None else {"units": unit, "mean": value}


def _hash(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()[:16]
