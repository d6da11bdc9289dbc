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
ASK_EVERY = 0.05
"""Seconds between checks whether the memory is free."""


class GpuSampler:
    """Reads the GPUs in a thread, because initialising NVML takes a moment and a faulty driver may hang.

    Each `sample` asks for the next reading and returns what the last one found; the first one starts the thread, which
    loads the drivers' libraries. `owns` tells which processes are the engine's; it is asked in that thread.
    """

    def __init__(
        self, clock: Clock, *, open_reader: Callable[[], GpuReader | None] | None = None, owns: Owns = any_process
    ) -> None:
        self._clock = clock
        self._open_reader = open_reader or functools.partial(open_gpus, owns)
        self._wanted = threading.Event()
        self._newest: list[GpuSample] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def sample(self) -> list[GpuSample]:
        """Return the newest unread reading, one sample per device; never blocks."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gpu-sampler", daemon=True)
            self._thread.start()
        found, self._newest = self._newest, []
        self._wanted.set()
        return found

    async def left_over(self, patience: float) -> int | None:
        """Bytes that devices hold of the engine after its end: 0 as soon as they are free, or what `patience` leaves.

        None when there was no reading in that time.
        """
        left, began = None, self._clock.now()
        while left != 0 and self._clock.now() < began + patience:
            found = [each for each in self.sample() if each.at >= began]
            left = sum(each.engine_memory or 0 for each in found) if found else left
            await self._clock.sleep_until(self._clock.now() + (ASK_EVERY if left != 0 else 0.0))
        return left

    def close(self) -> None:
        """Stop the thread after the reading in progress."""
        self._closed = True
        self._wanted.set()

    def _run(self) -> None:
        reader = self._open_reader()
        while reader is not None and not self._closed:
            self._newest = list(reader(self._clock.now()))
            self._wanted.clear()
            self._wanted.wait()


def open_gpus(owns: Owns = any_process) -> GpuReader | None:
    """A reader of this machine's devices, NVIDIA's before AMD's; None when there are none that can be read."""
    return open_nvml(owns) or open_amd(owns)
