"""The entry point of the `servetop` command: while it loads, Ctrl-C ends it without a traceback.

For a headless run the sender process is started before anything else is imported, so that both load in parallel. It is
ended if it turns out not to be needed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys


def main() -> int:
    """Load and run the command line; return the exit code. An exhausted resource limit is reported in one line."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from servetop.core.system.own_python import drop_empty_entries

    _open_standard_streams()
    drop_empty_entries(os.environ, sys.path)
    from servetop.run import console
    from servetop.run.process.resource_limits import exhausted_resource, silence_teardown

    try:
        return _loaded_and_run(interruptible=interruptible)
    except Exception as error:
        if not (reason := exhausted_resource(error)):
            raise
        silence_teardown()
        console.message(reason)
        return 1


def _open_standard_streams() -> None:
    """Open the null device for each standard stream that is closed (`<&-`): libuv aborts if a socket has its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
            os.set_inheritable(number, True)


def _loaded_and_run(*, interruptible: bool) -> int:
    from servetop.core.errors import LoadError
    from servetop.core.system.environment import limit_own_threads
    from servetop.run.process.first_sender import FirstSender, runs_in_this_process

    limit_own_threads(os.environ)
    sender = None
    with contextlib.suppress(LoadError):  # the run tries again and reports the error
        sender = FirstSender.start() if runs_in_this_process(sys.argv[1:]) else None
    gc.disable()  # imported modules stay: collecting them would take a tenth of the time
    from servetop.cli.commands import command_group
    from servetop.cli.main import interrupted
    from servetop.cli.main import main as run

    command = command_group()
    gc.enable()
    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run(sender=sender, command=command)
    except KeyboardInterrupt:  # before or after what `run` itself guards
        return interrupted(sys.argv[1:])
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # no KeyboardInterrupt while the interpreter shuts down
        if sender is not None:
            sender.end_unused()
