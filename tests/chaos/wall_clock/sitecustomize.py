"""A wall clock that is set while programs run; only case processes have it on their path, never the tests.

`SERVETOP_CHAOS_CLOCK=AT:STEP,…`: each process sees Unix time jump by STEP seconds once it is AT seconds old.
"""

import os
import time

_steps = [tuple(map(float, step.split(":"))) for step in os.environ.get("SERVETOP_CHAOS_CLOCK", "").split(",") if step]
_born, _time, _time_ns, _monotonic = time.monotonic(), time.time, time.time_ns, time.monotonic


def _ahead() -> float:
    age = _monotonic() - _born
    return sum(step for at, step in _steps if age >= at)


if _steps:
    time.time = lambda: _time() + _ahead()
    time.time_ns = lambda: _time_ns() + int(_ahead() * 1e9)
