"""Base of the readers of one vendor's GPUs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from servetop.core.events import GpuSample
from servetop.engines.gpu.gpu_processes import Owns, any_process


class GpuReader(ABC):
    """Reads devices through the vendor's module; `owns` selects the processes whose memory is counted."""

    def __init__(self, library: Any, devices: Sequence[Any], owns: Owns = any_process) -> None:
        self._library = library
        self._devices = list(devices)
        self._owns = owns

    def __call__(self, at: float) -> Sequence[GpuSample]:
        """Read all devices, in the order of the vendor's module; takes some milliseconds. `at` is the samples' time."""
        return [self._device(device, index, at) for index, device in enumerate(self._devices)]

    @abstractmethod
    def _device(self, device: Any, index: int, at: float) -> GpuSample:
        """Read one device."""
