"""The manifest of a run as texts by dotted key, from everything that its header has."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from servetop.analysis.manifest.command_flags import flags_of, stable_path
from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.text import formats
from servetop.core.units import GIB

NOT_SET = "not set"
"""Text of an option or variable that was not given."""
STARTED = "started by servetop"
_NOT_IN_WORKLOAD = ("headers", "header_env", "timeout", "store_texts", "trace_rate", "dataset_path")
_PACKAGES = ("numpy", "httpx", "httptools", "uvloop")
_BATCH_SIZE_FLAGS = (
    "max-num-seqs",
    "max-batch-size",
    "max-running-requests",
    "triton-max-batch-size",
    "parallel",
    "np",
)
"""Options for the batch size of the engines, which in a sweep belongs to the cell: the recorded one is of one start."""
_ENGINE_SIZES = ("max_num_seqs", "max_model_len", "block_size")
_DIGEST_CHARACTERS = 12
_CONTAINER = re.compile("[0-9a-f]{12}")
"""The host name of a container, which every start changes."""


def manifest_entries(header: RunHeader, *, launched: bool = True) -> dict[str, str]:
    """Return everything known that identifies a run.

    `launched` selects the options of the engine: those of its whole command line, or only those given by the user,
    which older recordings have too.
    """
    manifest = header.manifest
    if header.imported is not None:
        return dict(_of_import(header))
    entries = dict(_of_config(header.config) if header.config.watch is None else _of_watch(header.config))
    if header.config.watch is None and not header.config.workload.endpoint and header.engine is not None:
        entries["workload.endpoint"] = header.engine.endpoints[0]
    entries |= _model(header)
    entries |= _files("workload.dataset_digest", _table(_table(manifest, "workload"), "dataset"))
    entries |= _files("workload.tokenizer_digest", _table(_table(manifest, "workload"), "tokenizer"))
    entries |= _engine(header, launched=launched)
    entries |= _gpus(_table(manifest, "gpu"))
    entries |= {f"servetop.{name}": text for name, text in _client_versions(header.versions)}
    entries |= {f"host.{name}": text for name, text in _host({**header.host, **_table(manifest, "host")})}
    return entries


def _of_import(header: RunHeader) -> Iterator[tuple[str, str]]:
    """Yield what a result of another load generator says; the rest of the configuration is unknown."""
    yield "imported.tool", str(_table(header.manifest, "imported").get("tool"))
    yield "workload.endpoint", header.config.workload.endpoint
    yield "workload.burstiness", _text(header.config.workload.burstiness)
    yield from _model(header)


def _of_config(config: RunConfig) -> Iterator[tuple[str, str]]:
    workload = config.workload
    for each in dataclasses.fields(WorkloadConfig):
        if each.name not in _NOT_IN_WORKLOAD:
            yield f"workload.{each.name}", _text(getattr(workload, each.name))
    if workload.dataset_path:
        yield "workload.dataset_path", workload.dataset_path.rstrip("/").rpartition("/")[2]
    yield "seed", str(config.seed)
    yield "client.workers", str(config.workers or "auto")
    yield "client.transport", config.engine.connection.transport or "auto"
    yield "client.timeout", _text(workload.timeout)
    yield "client.cooldown", _text(config.cooldown)
    yield "client.headers", _text({**workload.headers, **workload.header_env})
    yield "client.goodput", _text(config.goodput)


def _of_watch(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield what is configured of a watch, which has no workload."""
    yield "client.transport", config.engine.connection.transport or "auto"
    yield "client.headers", _text({**config.workload.headers, **config.workload.header_env})


def _model(header: RunHeader) -> Iterator[tuple[str, str]]:
    recorded = _table(header.manifest, "model")
    served = header.engine.model if header.engine is not None else None
    yield "model.name", served or header.config.engine.model or NOT_SET
    for part in ("config", "tokenizer", "weights"):
        yield from _files(f"model.{part}", _table(recorded, part))


def _files(key: str, files: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield one text for the names, sizes and digests of files: their number, total size and common digest."""
    if not files:
        return
    rows = [(name, data.get("size"), data.get("sha256")) for name, data in files.items() if isinstance(data, Mapping)]
    size = sum(size for _, size, _ in rows if isinstance(size, int))
    digest = hashlib.sha256(json.dumps(sorted(map(str, rows))).encode()).hexdigest()[:_DIGEST_CHARACTERS]
    yield key, f"{digest} ({len(rows)} file{'s' if len(rows) != 1 else ''}, {size:,} bytes)"


def _engine(header: RunHeader, *, launched: bool) -> Iterator[tuple[str, str]]:
    config, facts = header.config, header.engine
    changes_batch = any(stage.max_num_seqs is not None for stage in config.stages)
    several_sizes = len({stage.max_num_seqs for stage in config.stages}) > 1
    if facts is not None:
        yield from _facts(facts, changes_batch=changes_batch, several_sizes=several_sizes)
    else:
        yield "engine.name", config.engine.name
    if config.engine.url is not None:
        yield "engine.host", urlsplit(config.engine.url).hostname or config.engine.url
        return
    yield "engine.host", STARTED
    recorded = _table(header.manifest, "engine")
    flags = flags_of(_arguments(header, launched=launched), model_names=_model_names(header))
    of_cells = _BATCH_SIZE_FLAGS if several_sizes else ()
    yield from ((f"engine.args.{name}", text) for name, text in flags.items() if name not in of_cells)
    if executable := recorded.get("executable"):
        yield "engine.executable", stable_path(str(executable))
    yield from ((f"engine.environment.{name}", str(each)) for name, each in _table(recorded, "environment").items())
    if config.engine.launcher:
        yield "engine.image", f"{config.engine.launcher} {config.engine.image}".strip()


def _facts(facts: EngineFacts, *, changes_batch: bool, several_sizes: bool) -> Iterator[tuple[str, str]]:
    yield "engine.name", facts.name
    if facts.version is not None:
        yield "engine.version", facts.version
    if facts.kv_blocks_total is not None and not several_sizes:  # else it is that of one cell
        yield "kv_blocks", str(facts.kv_blocks_total)
    for name in _ENGINE_SIZES:
        value = getattr(facts, name)
        if value is not None and not (changes_batch and name == "max_num_seqs"):
            yield name, str(value)
    yield "replicas", str(max(len(facts.replica_urls), 1))


def _arguments(header: RunHeader, *, launched: bool) -> list[str]:
    """Return the arguments after the program: of the whole command line, or only those that the user gave."""
    engine = header.config.engine
    if launched:
        return [str(each) for each in launch_arguments(header)[1:]]
    batch = [] if engine.max_num_seqs is None else ["--max-num-seqs", str(engine.max_num_seqs)]
    return [*batch, *engine.extra_args]


def launch_arguments(header: RunHeader) -> list[Any]:
    """Return the recorded command line of the engine; empty if there is none."""
    argv = _table(header.manifest, "engine").get("argv")
    return argv if isinstance(argv, list) else []


def _model_names(header: RunHeader) -> set[str]:
    names = {header.config.engine.model, str(_table(header.manifest, "model").get("path") or "")}
    names |= {header.engine.model or "", *header.engine.models} if header.engine is not None else set()
    return names - {""}


def _gpus(gpu: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((f"gpu.{name}", str(gpu[name])) for name in ("driver", "cuda") if name in gpu)
    found = gpu.get("devices")
    devices = found if isinstance(found, list) else []
    if devices:
        yield "gpu.count", str(len(devices))
    for number, device in enumerate(devices):
        for name, value in _flat(device if isinstance(device, Mapping) else {}):
            yield f"gpu.{number}.{name}", _with_unit(name, value)


def _with_unit(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.startswith("clocks."):
            return f"{value / 1e6:.0f} MHz"
        if name == "memory":
            return formats.memory(value)
        if name == "power_limit":
            return f"{value:.0f} W"
    return _text(value)


def _flat(data: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield path + str(name), value


def _client_versions(versions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the versions of what affects a measurement."""
    if "servetop" in versions:
        yield "version", versions["servetop"]
    yield from ((name, versions[name]) for name in ("python", *_PACKAGES) if name in versions)


def _host(host: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in host.items():
        if name == "memory" and isinstance(value, int):
            yield name, f"{value / GIB:.0f} GiB"  # less than what differs between two boots
        elif not (name == "name" and _CONTAINER.fullmatch(str(value))):
            yield name, _text(value)


def _text(value: Any) -> str:
    if value is None or value in ("", {}):
        return NOT_SET
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    return str(value)


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}
