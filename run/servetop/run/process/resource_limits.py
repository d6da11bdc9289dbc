"""Reports exhausted limits and unusable files of the system in one line instead of a traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sys
from collections.abc import Iterator

from servetop.core.errors import ServetopError, system_reason

LEAST_OPEN_FILES = 64
"""Open files that the run process needs; its senders need one more for each request in flight."""
LEAST_ADDRESS_SPACE = 512 << 20
"""Bytes; more than a short run in the simulator needs."""

_ERRNOS = {
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
    errno.ENFILE: "the system has too many open files: close other programs",
    errno.ENOMEM: "out of memory: raise the limit (ulimit -v), or end other programs",
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NO_THREAD = "can't start new thread"
_LOADER_ERRORS = {
    "too many open files": errno.EMFILE,
    "cannot allocate memory": errno.ENOMEM,
    "failed to map segment": errno.ENOMEM,
    "cannot map": errno.ENOMEM,
}
"""Errors of the dynamic loader, as they appear in the text of an ImportError."""


def check_limits() -> None:
    """Raise a low soft limit of open files; ServetopError for limits with which a run would fail half-way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < LEAST_OPEN_FILES:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_OPEN_FILES, hard))
            soft = LEAST_OPEN_FILES
    if 0 <= soft < LEAST_OPEN_FILES:
        raise ServetopError(f"a run needs {LEAST_OPEN_FILES} open files and the limit is {soft}: raise it (ulimit -n)")
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= space < LEAST_ADDRESS_SPACE:
        raise ServetopError(
            f"a run needs {LEAST_ADDRESS_SPACE >> 20} MiB of address space and the limit is {space >> 20} MiB: "
            "raise it (ulimit -v)"
        )


def exhausted_resource(error: BaseException) -> str:
    """Return the limit that caused an error and what to do about it; empty for any other error."""
    return next(filter(None, map(_exhausted, _origins(error))), "")


def _origins(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes: a library may raise an error of its own."""
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _exhausted(error: BaseException) -> str:
    match error:
        case MemoryError():
            return _ERRNOS[errno.ENOMEM]
        case RuntimeError() if _NO_THREAD in str(error):
            return "the system cannot start more threads: raise its limit of memory or processes (ulimit -v, ulimit -u)"
        case OSError():
            return _ERRNOS.get(error.errno or 0, "")
        case ImportError():
            text = str(error).lower()
            return next((_ERRNOS[number] for part, number in _LOADER_ERRORS.items() if part in text), "")
    return ""


def unusable_file(error: BaseException) -> str:
    """Return the file that an error of the system is about, and what to do; empty for any other error."""
    if not isinstance(error, OSError) or isinstance(error, TimeoutError | ConnectionError):
        return ""
    reason = system_reason(error)
    if error.filename is None:
        return f"cannot write ({reason}): free some space" if error.errno in _FULL else ""
    return f"cannot use {os.fsdecode(error.filename)} ({reason}): check the path and its permissions"


def silence_teardown() -> None:
    """Suppress all output of objects that are destroyed while this process ends with an exhausted resource.

    Warnings, asyncio's log and errors in `__del__` are only consequences. Imports no module.
    """
    sys.unraisablehook = id  # a function that accepts the error and does nothing
    if warnings := sys.modules.get("warnings"):
        warnings.simplefilter("ignore")
    if logging := sys.modules.get("logging"):
        logging.disable()
