"""Base of the readers of one vendor's GPUs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.events import GpuSample
from servetop.engines.gpu.gpu_processes import Owns, any_process

_TELLING = ("utilisation", "memory_total", "power", "temperature", "sm_clock")
"""Values of which a device that works reports at least one."""


class GpuReader(ABC):
    """Reads devices through the vendor's module; `owns` selects the processes whose memory is counted."""

    def __init__(
        self,
        library: Any,
        devices: Sequence[Any],
        owns: Owns = any_process,
        *,
        unreadable: Mapping[int, str] | None = None,
    ) -> None:
        """`devices` has None in place of a device that could not be opened."""
        self._library = library
        self._devices = list(devices)
        self._owns = owns
        self._error = ""
        """The last error of the module."""
        self.unreadable = dict(unreadable or {})
        """Devices that cannot be read, by index, with the reason."""

    def __call__(self, at: float) -> Sequence[GpuSample]:
        """Read all devices, in the order of the vendor's module; takes some milliseconds. `at` is the samples' time."""
        found = [self._device(device, index, at) for index, device in enumerate(self._devices) if device is not None]
        for sample in found:
            if all(getattr(sample, name) is None for name in _TELLING):
                self.unreadable.setdefault(sample.index, self._error or "it reports no value")
        return found

    @abstractmethod
    def _device(self, device: Any, index: int, at: float) -> GpuSample:
        """Read one device."""
