"""What the system refuses when its limits are low, in one line instead of a traceback."""

from __future__ import annotations

import contextlib
import errno
import resource
import sys
from collections.abc import Iterator

from servetop.core.errors import ServetopError

LEAST_OPEN_FILES = 64
"""That the process of a run needs; its sender needs one more for each request in flight, and says so itself."""
LEAST_ADDRESS_SPACE = 512 << 20
"""Bytes, with room above what a short run in the simulator takes."""

_ERRNOS = {
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
    errno.ENFILE: "the system has too many open files: close other programs",
    errno.ENOMEM: "out of memory: raise the limit (ulimit -v), or end other programs",
}
_NO_THREAD = "can't start new thread"
_OF_LIBRARIES = {
    "too many open files": errno.EMFILE,
    "cannot allocate memory": errno.ENOMEM,
    "failed to map segment": errno.ENOMEM,
    "cannot map": errno.ENOMEM,
}
"""What the system's loader says where a library cannot be loaded, in the words of an ImportError."""


def check_limits() -> None:
    """Before a run: ServetopError where it would only fail half-way. A low soft limit of open files is raised."""
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
    """Which limit was met and what to do, where that is what an error came from; empty for any other error."""
    return next(filter(None, map(_words, _origins(error))), "")


def _origins(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and so on: a library may raise one of its own."""
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _words(error: BaseException) -> str:
    match error:
        case MemoryError():
            return _ERRNOS[errno.ENOMEM]
        case RuntimeError() if _NO_THREAD in str(error):
            return "the system starts no more threads: raise the limit of memory or of processes (ulimit -v, ulimit -u)"
        case OSError():
            return _ERRNOS.get(error.errno or 0, "")
        case ImportError():
            said = str(error).lower()
            return next((_ERRNOS[number] for words, number in _OF_LIBRARIES.items() if words in said), "")
    return ""


def silence_teardown() -> None:
    """Before this process ends with a shortage: what is destroyed half-way prints nothing more.

    Warnings, asyncio's log and errors in `__del__` would only tell what followed from it. No module is loaded for this.
    """
    sys.unraisablehook = id  # takes it, and does nothing
    if warnings := sys.modules.get("warnings"):
        warnings.simplefilter("ignore")
    if logging := sys.modules.get("logging"):
        logging.disable()
