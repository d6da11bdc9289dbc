"""Telemetry of NVIDIA GPUs through NVML (package nvidia-ml-py, imported as pynvml)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from servetop.core.events import GpuSample
from servetop.engines.gpu.gpu_processes import Owns, any_process, owned_memory
from servetop.engines.gpu.gpu_reader import GpuReader

MHZ = 1e6
MILLIWATT = 1e-3
MILLIJOULE = 1e-3
THROTTLE_REASONS: Mapping[int, str] = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "heat",
    0x040: "heat (hardware)",
    0x080: "power brake",
}
"""Bits of nvmlClocksEventReasons (nvml.h) for throttling other than idling (0x1) and user-set clocks (0x2, 0x100)."""


class NvmlReader(GpuReader):
    """Reads devices through a module with NVML's functions, in its order, which CUDA_VISIBLE_DEVICES does not change.

    Unsupported values are None.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._names: dict[int, str] = {}

    def _device(self, device: Any, index: int, at: float) -> GpuSample:
        nvml = self._library
        memory = self._value(nvml.nvmlDeviceGetMemoryInfo, device)
        use = self._value(nvml.nvmlDeviceGetUtilizationRates, device)
        temperature = self._value(nvml.nvmlDeviceGetTemperature, device, nvml.NVML_TEMPERATURE_GPU)
        sm_clock = self._value(nvml.nvmlDeviceGetClockInfo, device, nvml.NVML_CLOCK_SM)
        memory_clock = self._value(nvml.nvmlDeviceGetClockInfo, device, nvml.NVML_CLOCK_MEM)
        return GpuSample(
            at=at,
            index=index,
            name=self._name(device, index),
            utilisation=None if use is None else use.gpu / 100,
            memory_used=None if memory is None else int(memory.used),
            memory_total=None if memory is None else int(memory.total),
            power=_scaled(self._value(nvml.nvmlDeviceGetPowerUsage, device), MILLIWATT),
            temperature=_scaled(temperature, 1.0),
            sm_clock=_scaled(sm_clock, MHZ),
            memory_clock=_scaled(memory_clock, MHZ),
            engine_memory=owned_memory(self._processes(device), self._owns),
            energy=_scaled(self._value(nvml.nvmlDeviceGetTotalEnergyConsumption, device), MILLIJOULE),
            throttled=throttle_reasons(self._value(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, device)),
        )

    def _name(self, device: Any, index: int) -> str:
        """Return the name of a device, also after it was lost."""
        name = self._value(self._library.nvmlDeviceGetName, device)
        if name is not None:
            self._names[index] = _text(name)
        return self._names.get(index, "GPU")

    def _processes(self, device: Any) -> list[tuple[int, int | None]]:
        running = self._value(self._library.nvmlDeviceGetComputeRunningProcesses, device) or ()
        return [(each.pid, each.usedGpuMemory) for each in running]

    def _value(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._library.NVMLError as error:
            self._error = str(error)
            return None


def open_nvml(owns: Owns = any_process) -> NvmlReader | None:
    """Open this machine's NVIDIA devices; None if NVML is missing, fails to load, or finds none."""
    try:
        import pynvml
    except (ImportError, OSError, MemoryError):  # MemoryError, OSError: low on memory or file descriptors
        return None
    try:
        pynvml.nvmlInit()
        devices, unreadable = device_handles(pynvml)
    except pynvml.NVMLError:
        return None
    return NvmlReader(pynvml, devices, owns, unreadable=unreadable) if devices else None


def device_handles(nvml: Any) -> tuple[list[Any], dict[int, str]]:
    """Return the handles of all devices (None: it cannot be opened), and the reasons by NVML's index.

    A card that fell off the bus cannot be opened, and the others can.
    """
    handles: list[Any] = []
    unreadable: dict[int, str] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handles.append(nvml.nvmlDeviceGetHandleByIndex(index))
        except nvml.NVMLError as error:
            handles.append(None)
            unreadable[index] = str(error)
    return handles, unreadable


def throttle_reasons(reasons: int | None) -> str | None:
    """Return why the clocks are throttled; empty: they are not; None: not reported by the card."""
    return None if reasons is None else ", ".join(reason for bit, reason in THROTTLE_REASONS.items() if reasons & bit)


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit


def _text(name: object) -> str:
    return name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name)
