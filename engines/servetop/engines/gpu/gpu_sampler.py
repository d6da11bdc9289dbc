"""GPU telemetry of NVIDIA (NVML) and AMD (amdsmi). Without driver, library or GPU there are no samples and no error."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from servetop.core.clock import Clock
from servetop.core.events import GpuSample
from servetop.engines.gpu.amd import open_amd
from servetop.engines.gpu.gpu_processes import Owns, any_process
from servetop.engines.gpu.gpu_reader import GpuReader
from servetop.engines.gpu.nvidia import open_nvml

RELEASE_SECONDS = 5.0
"""Seconds for drivers to free the memory of processes that have exited."""
POLL_INTERVAL = 0.05
"""Seconds between checks whether the memory is free."""


class GpuSampler:
    """Reads the GPUs in a thread, because initialising NVML takes a moment and a faulty driver may hang.

    Each `sample` returns the last reading and requests the next one; the first call starts the thread, which loads the
    drivers' libraries. `owns` identifies the engine's processes; it is called in that thread.
    """

    def __init__(
        self, clock: Clock, *, open_reader: Callable[[], GpuReader | None] | None = None, owns: Owns = any_process
    ) -> None:
        self._clock = clock
        self._open_reader = open_reader or functools.partial(open_gpus, owns)
        self._requested = threading.Event()
        self._newest: list[GpuSample] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._reader: GpuReader | None = None
        self._named: set[int] = set()
        """Unreadable devices that were returned."""

    def sample(self) -> list[GpuSample]:
        """Return the newest unread reading, one sample per device; never blocks."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gpu-sampler", daemon=True)
            self._thread.start()
        readings, self._newest = self._newest, []
        self._requested.set()
        return readings

    def newly_unreadable(self) -> list[str]:
        """Return a sentence for each device that has become unreadable since the last call."""
        unreadable = {} if self._reader is None else dict(self._reader.unreadable)
        found = sorted(unreadable.keys() - self._named)
        self._named.update(found)
        return [
            f"GPU {index} is not sampled: it cannot be read ({unreadable[index]}): see nvidia-smi" for index in found
        ]

    async def left_over(self, timeout: float) -> int | None:
        """Wait until the memory of the exited engine is free, and return 0; or the bytes still in use after `timeout`.

        None if there was no reading in that time.
        """
        used, start = None, self._clock.now()
        while used != 0 and self._clock.now() < start + timeout:
            readings = [each for each in self.sample() if each.at >= start]
            used = sum(each.engine_memory or 0 for each in readings) if readings else used
            await self._clock.sleep_until(self._clock.now() + (POLL_INTERVAL if used != 0 else 0.0))
        return used

    def close(self) -> None:
        """Stop the thread after the reading in progress."""
        self._closed = True
        self._requested.set()

    def _run(self) -> None:
        reader = self._reader = self._open_reader()
        while reader is not None and not self._closed:
            self._newest = list(reader(self._clock.now()))
            self._requested.clear()
            self._requested.wait()


def open_gpus(owns: Owns = any_process) -> GpuReader | None:
    """Open this machine's NVIDIA or else AMD devices; None if there are none that can be read."""
    return open_nvml(owns) or open_amd(owns)
