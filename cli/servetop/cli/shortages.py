"""What the system refuses when its limits are low, in one line instead of a traceback."""

from __future__ import annotations

import errno

_ERRNOS = {
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
    errno.ENFILE: "the system has too many open files: close other programs",
    errno.ENOMEM: "out of memory: raise the limit (ulimit -v), or end other programs",
}
_NO_THREAD = "can't start new thread"


def shortage(error: BaseException) -> str:
    """What was short, and what to do; empty for any other error."""
    match error:
        case MemoryError():
            return _ERRNOS[errno.ENOMEM]
        case RuntimeError() if _NO_THREAD in str(error):
            return "the system starts no more threads: raise the limit of memory or of processes (ulimit -v, ulimit -u)"
        case OSError():
            return _ERRNOS.get(error.errno or 0, "")
    return ""
