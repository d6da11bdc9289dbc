"""One exception tree; every message is one line that says what happened and what to do next."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes, the same for every command."""

    OK = 0
    RUN_FAILED = 1
    USAGE = 2
    ENGINE_FAILED = 3
    CANNOT_TELL = 98
    THRESHOLDS = 99
    INTERRUPTED = 130


class ServetopError(Exception):
    """Base of all errors shown to a person without a traceback; carries the process exit code."""

    exit_code: ExitCode = ExitCode.RUN_FAILED


class UsageError(ServetopError):
    """Invalid input: an option, a configuration file, a list of stages."""

    exit_code = ExitCode.USAGE


class EngineError(ServetopError):
    """An engine could not be started, reached or kept alive; `log_tail` holds its last log lines."""

    exit_code = ExitCode.ENGINE_FAILED

    def __init__(self, message: str, log_tail: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.log_tail = log_tail


class RecordingError(ServetopError):
    """A recording cannot be opened, read or written."""


class NotARecordingError(RecordingError):
    """A file is not a recording, or may not be read."""


class PlugInError(ServetopError):
    """A plug-in of another package cannot be loaded, raised an error, or returned something else than it may."""


class LoadError(ServetopError):
    """The load could not be generated: a sender died or was refused by the operating system."""


def system_reason(error: OSError) -> str:
    """Return the reason that the system gives for an error, as in `no such file or directory`."""
    return (error.strerror or str(error)).lower()
