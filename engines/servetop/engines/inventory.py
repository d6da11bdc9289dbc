"""Inventory of this machine for `servetop doctor`: startable engines, GPUs and the processes that use them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from servetop.core.config import EngineConfig
from servetop.core.errors import ServetopError
from servetop.core.text import formats
from servetop.engines.engine_registry import engine_names, load_engine
from servetop.engines.gpu.nvidia import device_handles
from servetop.engines.plug_in import PATIENCE, within

EXAMPLE_PORT = 8000
MAX_COMMAND_CHARS = 60
NVIDIA_DRIVER_FILES = ("/proc/driver/nvidia/version", "/dev/nvidiactl")
"""Files of NVIDIA's kernel driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartableEngine:
    """An engine and the beginning of its command line, or why it cannot be started here."""

    name: str
    command: str = ""
    trouble: str = ""


def startable_engines(model: str = "llama-2-7b", *, patience: float = PATIENCE) -> list[StartableEngine]:
    """List all known engines by name, without starting any; each has `patience` seconds to tell its command line."""
    return [_startable(name, model, patience) for name in engine_names()]


def _startable(name: str, model: str, patience: float) -> StartableEngine:
    config = EngineConfig(name=name, model=model)
    try:
        engine = load_engine(name)
    except ServetopError as error:
        return StartableEngine(name=name, trouble=str(error))
    try:
        command = within(patience, lambda: engine.launch(config, port=EXAMPLE_PORT), what=f"engine {name!r}: launch")
    except ServetopError as error:
        version = None
        with suppress(ServetopError):
            version = engine.installed()
        if version:  # only the model is unsuitable
            return StartableEngine(name=name, command="found" if version == "yes" else f"version {version}")
        return StartableEngine(name=name, trouble=str(error))
    program = Path(command.argv[0]).name  # without its long folder
    return StartableEngine(name=name, command=shortened(shlex.join([program, *command.argv[1:]])))


def shortened(text: str, longest: int = MAX_COMMAND_CHARS) -> str:
    """Cut the text to `longest` characters, with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """One device; memory in bytes, None if the device does not report it."""

    index: int
    name: str
    used: int | None
    total: int | None
    holders: tuple[str, ...] = ()
    """Processes that use its memory, largest first: pid, amount, command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInventory:
    """All devices and their driver."""

    devices: tuple[GpuMemory, ...] = ()
    unreadable: Mapping[int, str] = field(default_factory=dict)
    """Devices that cannot be read, by index, with the reason."""
    driver: str = ""
    """Version of the driver, and the newest CUDA that it supports."""
    trouble: str = ""
    """Why no device is usable although a driver is installed."""


def gpu_inventory(nvml: Any = None, *, driver_files: Sequence[str] = NVIDIA_DRIVER_FILES) -> GpuInventory:
    """List NVIDIA's devices through NVML (a module with its functions; None: pynvml); never raises."""
    nvml = import_module("pynvml") if nvml is None else nvml
    try:
        nvml.nvmlInit()
        handles, unreadable = device_handles(nvml)
        devices = []
        for index, handle in enumerate(handles):
            try:
                devices += [] if handle is None else [_memory(nvml, handle, index)]
            except nvml.NVMLError as error:
                unreadable[index] = str(error)
        driver = _driver(nvml) if devices else ""
        return GpuInventory(devices=tuple(devices), unreadable=unreadable, driver=driver)
    except nvml.NVMLError as error:
        installed = any(Path(file).exists() for file in driver_files)
        return GpuInventory(trouble=f"NVIDIA's driver is installed but cannot be used: {error}" if installed else "")


def _driver(nvml: Any) -> str:
    version, cuda = nvml.nvmlSystemGetDriverVersion(), int(nvml.nvmlSystemGetCudaDriverVersion())
    return f"NVIDIA {_text(version)}, CUDA up to {cuda // 1000}.{cuda % 1000 // 10}"


def _memory(nvml: Any, device: Any, index: int) -> GpuMemory:
    name, memory, held = _text(nvml.nvmlDeviceGetName(device)), None, []
    with suppress(nvml.NVMLError):  # cards that share the memory of the machine report none
        memory = nvml.nvmlDeviceGetMemoryInfo(device)
    with suppress(nvml.NVMLError):
        held = [(each.usedGpuMemory or 0, each.pid) for each in nvml.nvmlDeviceGetComputeRunningProcesses(device)]
    return GpuMemory(
        index=index,
        name=name,
        used=None if memory is None else int(memory.used),
        total=None if memory is None else int(memory.total),
        holders=tuple(_holder(pid, size) for size, pid in sorted(held, reverse=True)),
    )


def _holder(pid: int, size: int) -> str:
    command = "a process that cannot be inspected"
    with suppress(psutil.Error, OSError):
        command = shortened(" ".join(psutil.Process(pid).cmdline()))
    return f"process {pid} with {formats.memory(size)} ({command})"


def _text(name: object) -> str:
    return name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name)
