"""The real-time scheduling class of a thread: enter it, leave it, find out whether the system permits it.

A thread in that class runs as soon as it has something to do, ahead of every thread of the ordinary class. It is
SCHED_RR at its lowest priority, which the threads and processes that it starts do not inherit (SCHED_RESET_ON_FORK).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

HOW_TO_GRANT = (
    "--cap-add SYS_NICE (container), LimitRTPRIO=1 (systemd), 'USER - rtprio 1' in /etc/security/limits.conf, or "
    "setcap cap_sys_nice+ep on the Python interpreter"
)
"""Ways to permit the class to a process without root's rights."""
_LOWEST = 1


def enter_real_time() -> bool:
    """Move the calling thread into the real-time class; return whether the system has and permits it."""
    if sys.platform != "linux":
        return False
    _raise_priority_limit()
    return _set(os.SCHED_RR | os.SCHED_RESET_ON_FORK, _LOWEST)


def leave_real_time() -> None:
    """Move the calling thread back into the ordinary class; its niceness stays."""
    if sys.platform == "linux":
        # a thread without the right may not take the flag back
        _ = _set(os.SCHED_OTHER, 0) or _set(os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, 0)


def may_enter_real_time() -> bool:
    """Whether this process may use the class, tried by a thread that ends at once."""
    permitted: list[bool] = []
    trial = threading.Thread(target=lambda: permitted.append(enter_real_time()))
    trial.start()
    trial.join()
    return permitted == [True]


def limit_real_time(seconds: float) -> None:
    """Have the kernel send SIGXCPU to a thread of the class that has computed for this long without a pause."""
    if sys.platform != "linux":
        return
    import resource

    microseconds = int(seconds * 1e6)
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
        soft = microseconds if hard == resource.RLIM_INFINITY else min(microseconds, hard // 2)  # at `hard` it kills
        resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))


def _set(policy: int, priority: int) -> bool:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except OSError:
        return False
    return True


def _raise_priority_limit() -> None:
    """Raise the soft limit of real-time priorities, which may be below the hard one."""
    import resource

    with contextlib.suppress(ValueError, OSError):
        soft, hard = resource.getrlimit(resource.RLIMIT_RTPRIO)
        if soft == 0 and hard != 0:
            resource.setrlimit(resource.RLIMIT_RTPRIO, (hard, hard))
