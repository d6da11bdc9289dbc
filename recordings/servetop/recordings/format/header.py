"""Encodes the run header as the only row of table `run`: JSON texts and numbers, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig, from_data, to_data
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.text.encodable import encodable_data
from servetop.core.text.known_secrets import redactor_of
from servetop.core.text.redaction import Redactor
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.format.liveness import Writer


def encode_header(header: RunHeader, *, writer: Writer, redactor: Redactor) -> dict[str, Any]:
    """Return the values by column of `run`; `pid` is the writer's unless the header contains one."""
    return {
        "origin_ns": header.anchor.origin_ns,
        "wall_epoch_s": header.anchor.wall_epoch_s,
        "config": encode_config(header.config, redactor=redactor),
        "versions": _dumped(redactor.data(header.versions)),
        "host": _dumped(redactor.data(header.host)),
        "engine": None if header.engine is None else encode_engine(header.engine, redactor=redactor),
        "pid": writer.pid if header.pid is None else header.pid,
        "writer": writer.to_json(),
        "manifest": encode_manifest(header.manifest, redactor=redactor),
        "random_tokens": header.random_tokens,
        "tick_seconds": TICK_SECONDS,
        "predicted": int(header.predicted),
    }


def as_recorded(config: RunConfig) -> RunConfig:
    """Return a configuration as read from its recording, without secrets, for comparison with a recorded one."""
    data = encode_config(config, redactor=redactor_of(config))
    return from_data(RunConfig, orjson.loads(data), strict=False, where="configuration")


def encode_config(config: RunConfig, *, redactor: Redactor) -> str:
    """Return the value of the column `config`, without secrets."""
    return _dumped(redactor.data(to_data(config)))


def encode_engine(facts: EngineFacts, *, redactor: Redactor) -> str:
    """Return the JSON text of column `engine`."""
    return _dumped(redactor.data(to_data(facts)))


def encode_manifest(manifest: Mapping[str, Any], *, redactor: Redactor) -> str | None:
    """Return the JSON text of column `manifest`; None for an empty one."""
    return _dumped(redactor.data(manifest)) if manifest else None


def decode_header(row: Mapping[str, Any]) -> RunHeader:
    """Decode a header, ignoring fields of newer minor versions; ValueError or UsageError if it is damaged."""
    engine = orjson.loads(row["engine"]) if row.get("engine") else None
    versions, host, manifest = (orjson.loads(row.get(name) or "{}") for name in ("versions", "host", "manifest"))
    if not all(isinstance(each, dict) for each in (versions, host, manifest)):
        raise ValueError("versions, host and manifest are objects")
    return RunHeader(
        config=from_data(RunConfig, orjson.loads(row["config"]), strict=False, where="recorded config"),
        anchor=ClockAnchor(origin_ns=row["origin_ns"], wall_epoch_s=row["wall_epoch_s"]),
        versions=versions,
        host=host,
        engine=None if engine is None else from_data(EngineFacts, engine, strict=False, where="recorded engine"),
        pid=row.get("pid"),
        manifest=manifest,
        random_tokens=row.get("random_tokens"),
        predicted=bool(row.get("predicted")),
    )


def decode_end(row: Mapping[str, Any]) -> RunEnd | None:
    """Return the end of the run; None if it is still running or was killed."""
    if row.get("end_at") is None:
        return None
    return RunEnd(at=row["end_at"], exit_code=row.get("exit_code") or 0, reason=row.get("end_reason") or "")


def _dumped(data: Any) -> str:
    return orjson.dumps(encodable_data(data), default=str, option=orjson.OPT_NON_STR_KEYS).decode()
