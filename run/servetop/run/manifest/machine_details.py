"""The parts of a manifest that are read from this machine: files, GPUs, processors. Reading may take seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.cell_workload import cell_workloads
from servetop.core.errors import ServetopError


def machine_details(config: RunConfig, environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the parts of the manifest by key, the quick ones first; one that cannot be read is left out."""
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "host": _host,
        "workload": lambda: _workload(config),
        "model": lambda: _model(config.engine, environ),
        "gpu": lambda: _gpus(config.engine),
    }
    for name, read in parts.items():
        with suppress(OSError, ServetopError):  # such as an unknown model, which the engine reports
            if details := read():
                yield name, details


def _host() -> dict[str, Any]:
    from servetop.run.manifest.host_details import host_details

    return host_details()


def _workload(config: RunConfig) -> dict[str, Any]:
    workload = config.workload
    paths = list(dict.fromkeys(each.dataset_path for each in cell_workloads(workload, config.stages)))
    paths = [path for path in paths if path]
    if not (paths or workload.tokenizer):
        return {}
    from servetop.run.manifest.model_files import tokenizer_details

    files = {
        "dataset": _datasets(paths),
        "tokenizer": tokenizer_details(Path(workload.tokenizer).expanduser()) if workload.tokenizer else {},
    }
    return {name: found for name, found in files.items() if found}


def _datasets(paths: Sequence[str]) -> dict[str, Any]:
    """Return the files of all datasets of a run by name; a name that two of them have stands behind its path."""
    from servetop.run.manifest.file_digests import data_details

    found: dict[str, Any] = {}
    for path in paths:
        for name, details in data_details(Path(path).expanduser()).items():
            found[f"{path}: {name}" if name in found else name] = details
    return found


def _model(config: EngineConfig, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the files of the model of an engine that servetop starts; those of an attached server are not known."""
    if config.url is not None:
        return {}
    from servetop.engines.adapters.engine_flags import flag_value
    from servetop.engines.engine_registry import load_engine
    from servetop.run.manifest.model_files import model_details

    given = config.extra_args
    return model_details(
        load_engine(config.name).resolve_model(config.model),
        environ=environ,
        revision=flag_value(given, "--revision") or "",
        tokenizer=flag_value(given, "--tokenizer") or flag_value(given, "--tokenizer-path") or "",
    )


def _gpus(config: EngineConfig) -> dict[str, Any]:
    """Return the GPUs of this machine, if the engine runs here."""
    from servetop.engines.control.control_client import is_local
    from servetop.engines.gpu.gpu_details import gpu_details

    return gpu_details() if config.url is None or is_local(config.url) else {}
