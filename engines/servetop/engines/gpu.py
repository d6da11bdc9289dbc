"""GPU telemetry through NVML. No driver, no NVML, no GPU: no samples, and no error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from servetop.core.clock import Clock
from servetop.core.events import GpuSample

MHZ = 1e6
MILLIWATT = 1e-3


class GpuReader(Protocol):
    """Reads all devices once; may take some milliseconds."""

    def __call__(self, at: float) -> Sequence[GpuSample]:
        """The devices as of `at`; empty when there are none."""
        ...


class GpuSampler:
    """Reads the GPUs in a thread of its own: waking NVML up takes a moment, and a sick driver may hang.

    Each `sample` asks for the next reading and returns what the last one found.
    """

    def __init__(self, clock: Clock, *, open_reader: Callable[[], GpuReader | None] | None = None) -> None:
        self._clock = clock
        self._open_reader = open_reader or open_nvml
        self._wanted = threading.Event()
        self._newest: list[GpuSample] = []
        self._thread = threading.Thread(target=self._run, name="gpu-sampler", daemon=True)
        self._closed = False
        self._thread.start()

    def sample(self) -> list[GpuSample]:
        """The newest reading that was not returned yet, one sample a device; never waits."""
        found, self._newest = self._newest, []
        self._wanted.set()
        return found

    def close(self) -> None:
        """End the thread after a reading under way."""
        self._closed = True
        self._wanted.set()

    def _run(self) -> None:
        reader = self._open_reader()
        while reader is not None and not self._closed:
            self._newest = list(reader(self._clock.now()))
            self._wanted.clear()
            self._wanted.wait()


def open_nvml() -> GpuReader | None:
    """A reader of this machine's NVIDIA devices; None when NVML cannot be had or finds none."""
    import pynvml

    try:
        pynvml.nvmlInit()
        devices = [pynvml.nvmlDeviceGetHandleByIndex(each) for each in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return None
    return NvmlReader(pynvml, devices) if devices else None


class NvmlReader:
    """Reads devices through a module with NVML's functions; what a device does not support is None."""

    def __init__(self, nvml: Any, devices: Sequence[Any]) -> None:
        self._nvml = nvml
        self._devices = list(devices)

    def __call__(self, at: float) -> Sequence[GpuSample]:
        """All devices, numbered as NVML does (which CUDA_VISIBLE_DEVICES does not change)."""
        return [self._device(device, index, at) for index, device in enumerate(self._devices)]

    def _device(self, device: Any, index: int, at: float) -> GpuSample:
        nvml = self._nvml
        memory = self._value(nvml.nvmlDeviceGetMemoryInfo, device)
        use = self._value(nvml.nvmlDeviceGetUtilizationRates, device)
        power = self._value(nvml.nvmlDeviceGetPowerUsage, device)
        temperature = self._value(nvml.nvmlDeviceGetTemperature, device, nvml.NVML_TEMPERATURE_GPU)
        sm_clock = self._value(nvml.nvmlDeviceGetClockInfo, device, nvml.NVML_CLOCK_SM)
        memory_clock = self._value(nvml.nvmlDeviceGetClockInfo, device, nvml.NVML_CLOCK_MEM)
        return GpuSample(
            at=at,
            index=index,
            name=_text(self._value(nvml.nvmlDeviceGetName, device)),
            utilisation=None if use is None else use.gpu / 100,
            memory_used=None if memory is None else int(memory.used),
            memory_total=None if memory is None else int(memory.total),
            power=None if power is None else power * MILLIWATT,
            temperature=None if temperature is None else float(temperature),
            sm_clock=None if sm_clock is None else sm_clock * MHZ,
            memory_clock=None if memory_clock is None else memory_clock * MHZ,
        )

    def _value(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return ask(*arguments)
        except self._nvml.NVMLError:
            return None


def _text(name: object) -> str:
    return name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name or "GPU")
