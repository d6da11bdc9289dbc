"""What identifies this machine's GPUs in a manifest: model, memory, driver, limits; never a serial number or UUID."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from servetop.engines.gpu.amd import MHZ, MIB
from servetop.engines.gpu.nvidia import MILLIWATT, device_handles

MAX_WATTS = 10_000
"""A higher power limit of amdsmi is in microwatts, as in its newer versions."""


def gpu_details(*, nvml: Any = None, amdsmi: Any = None) -> dict[str, Any]:
    """Return `driver`, `cuda` and `devices` of NVIDIA's or else AMD's GPUs; empty without any. Takes up to a second.

    `nvml` and `amdsmi` are modules with the functions of pynvml and amdsmi; None imports those.
    """
    return _nvidia(nvml or _imported("pynvml")) or _amd(amdsmi or _imported("amdsmi"))


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except (ImportError, OSError, KeyError, MemoryError):  # without ROCm's library, amdsmi may raise any of these
        return None


def _nvidia(nvml: Any) -> dict[str, Any]:
    if nvml is None:
        return {}
    try:
        nvml.nvmlInit()
        devices = [each for each in device_handles(nvml)[0] if each is not None]
    except nvml.NVMLError:
        return {}
    if not devices:
        return {}
    cuda = _value(nvml, "nvmlSystemGetCudaDriverVersion")
    details = {
        "driver": _text(_value(nvml, "nvmlSystemGetDriverVersion")),
        "cuda": None if cuda is None else f"{int(cuda) // 1000}.{int(cuda) % 1000 // 10}",
        "devices": [_known(_nvidia_device(nvml, each)) for each in devices],
    }
    return dict(_known(details.items()))


def _nvidia_device(nvml: Any, device: Any) -> Iterator[tuple[str, Any]]:
    memory = _value(nvml, "nvmlDeviceGetMemoryInfo", device)
    yield "name", _text(_value(nvml, "nvmlDeviceGetName", device))
    yield "memory", None if memory is None else int(memory.total)
    yield "power_limit", _scaled(_value(nvml, "nvmlDeviceGetPowerManagementLimit", device), MILLIWATT)
    clocks = {
        "sm_max": ("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
        "memory_max": ("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
        "sm_application": ("nvmlDeviceGetApplicationsClock", "NVML_CLOCK_GRAPHICS"),
        "memory_application": ("nvmlDeviceGetApplicationsClock", "NVML_CLOCK_MEM"),
    }
    values = {name: _value(nvml, function, device, getattr(nvml, kind)) for name, (function, kind) in clocks.items()}
    yield "clocks", _known((name, _scaled(value, MHZ)) for name, value in values.items()) or None
    yield "persistence", _switch(_value(nvml, "nvmlDeviceGetPersistenceMode", device))
    yield "ecc", _switch(_value(nvml, "nvmlDeviceGetEccMode", device))
    yield "mig", _switch(_value(nvml, "nvmlDeviceGetMigMode", device))


def _value(nvml: Any, function: str, *arguments: Any) -> Any:
    """Return the result of one of NVML's functions; None where the card, driver or version of the module lacks it."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return None


def _amd(smi: Any) -> dict[str, Any]:
    if smi is None:
        return {}
    try:
        smi.amdsmi_init()
        devices = smi.amdsmi_get_processor_handles()
    except smi.AmdSmiException:
        return {}
    if not devices:
        return {}
    driver = _row(smi, "amdsmi_get_gpu_driver_info", devices[0]).get("driver_version")
    details = {"driver": driver, "devices": [_known(_amd_device(smi, each)) for each in devices]}
    return dict(_known(details.items()))


def _amd_device(smi: Any, device: Any) -> Iterator[tuple[str, Any]]:
    memory = _number(_row(smi, "amdsmi_get_gpu_vram_usage", device).get("vram_total"))
    limit = _number(_row(smi, "amdsmi_get_power_cap_info", device).get("power_cap"))
    yield "name", _row(smi, "amdsmi_get_gpu_asic_info", device).get("market_name")
    yield "memory", None if memory is None else int(memory * MIB)
    yield "power_limit", limit / 1e6 if limit is not None and limit > MAX_WATTS else limit
    kinds = {"sm_max": smi.AmdSmiClkType.GFX, "memory_max": smi.AmdSmiClkType.MEM}
    values = {name: _row(smi, "amdsmi_get_clock_info", device, kind).get("max_clk") for name, kind in kinds.items()}
    yield "clocks", _known((name, _scaled(_number(value), MHZ)) for name, value in values.items()) or None


def _row(smi: Any, function: str, *arguments: Any) -> Mapping[str, Any]:
    call: Callable[..., Any] | None = getattr(smi, function, None)
    try:
        found = call(*arguments) if call is not None else None
    except smi.AmdSmiException:
        return {}
    return found if isinstance(found, Mapping) else {}


def _known(pairs: Any) -> dict[str, Any]:
    """Return a dictionary without values that are unknown."""
    return {name: value for name, value in pairs if value not in (None, "", "N/A")}


def _switch(value: Any) -> bool | None:
    """Return a mode that is on or off; of a pair, the current one."""
    current = value[0] if isinstance(value, list | tuple) else value
    return None if current is None else bool(current)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit


def _text(value: object) -> str | None:
    return (
        value.decode("utf-8", errors="replace") if isinstance(value, bytes) else None if value is None else str(value)
    )
