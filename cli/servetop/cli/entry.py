"""The entry point of the `servetop` command: while it loads, Ctrl-C ends it without a traceback."""

from __future__ import annotations

import signal


def main() -> int:
    """Load the command line, then run it; the exit code."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from servetop.cli.main import main as run

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()
