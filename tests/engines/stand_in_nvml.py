"""NVML's functions for simulated cards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psutil


class NvmlError(Exception):
    """As pynvml.NVMLError."""


class OneDevice:
    """A driver with one device."""

    NVMLError = NvmlError

    def nvmlInit(self) -> None:
        return None

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index


class TwoCards:
    """NVML's functions over two cards, of which the second one cannot tell its power, as some cannot."""

    NVMLError = NvmlError
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    def nvmlDeviceGetName(self, device: int) -> str | bytes:
        return "NVIDIA H200" if device == 0 else b"Tesla T4"

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        return SimpleNamespace(used=10 << 30, total=140 << 30)

    def nvmlDeviceGetUtilizationRates(self, device: int) -> Any:
        return SimpleNamespace(gpu=87, memory=40)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:
        if device == 1:
            raise NvmlError("Not Supported")
        return 612_500

    def nvmlDeviceGetTemperature(self, device: int, sensor: int) -> int:
        return 61

    def nvmlDeviceGetClockInfo(self, device: int, kind: int) -> int:
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetTotalEnergyConsumption(self, device: int) -> int:
        if device == 1:
            raise NvmlError("Not Supported")
        return 8_123_456

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: int) -> int:
        return 0x1 if device == 1 else 0x4 | 0x20

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[Any]:
        if device == 1:
            raise NvmlError("No Permission")
        held = {100: 6 << 30, 101: 3 << 30, 999: 1 << 30, 1000: None}
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in held.items()]


class SlowToFree(OneDevice, TwoCards):
    """One card that lists an ended process for a number of further readings."""

    def __init__(self, pid: int, *, readings: int) -> None:
        self.pid = pid
        self._left = readings

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[Any]:
        if not psutil.pid_exists(self.pid):
            self._left -= 1
        return [SimpleNamespace(pid=self.pid, usedGpuMemory=6 << 30)] if self._left >= 0 else []


class OneLostCard(TwoCards):
    """Three cards, of which the first cannot be opened; the last one is lost once `gone` is set."""

    gone = False

    def nvmlInit(self) -> None:
        return None

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index == 0:
            raise NvmlError("GPU is lost")
        return index

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("nvmlDeviceGet") or name in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"):
            return found

        def call(device: int, *arguments: Any) -> Any:
            if device == 2 and self.gone:
                raise NvmlError("GPU is lost")
            return found(device, *arguments)

        return call

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.82.07"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 13_000
