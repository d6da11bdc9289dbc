"""Keeps CPUs from entering idle states during a measurement, as `idle=poll` would.

An idle CPU takes from 0.1 ms to several milliseconds to wake up, longest on virtual machines, which would be attributed
to the client or the server. One endless loop per CPU in the kernel's lowest class (SCHED_IDLE) lets all other processes
run immediately.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOOP = """
import os
os.sched_setaffinity(0, {%d})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""


@contextmanager
def processors_awake(wanted: bool = True) -> Iterator[None]:
    """Keep the CPUs available to this process awake within the context; do nothing unless `wanted`."""
    cpus = sorted(os.sched_getaffinity(0)) if wanted else []
    loops = [subprocess.Popen([sys.executable, "-S", "-c", _LOOP % cpu], stdout=subprocess.DEVNULL) for cpu in cpus]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
