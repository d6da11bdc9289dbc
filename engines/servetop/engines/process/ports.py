"""TCP ports of this machine: find a free one, check one, and find the process that listens on one."""

from __future__ import annotations

import socket
from contextlib import suppress

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Return a port that is free at the moment; another process may take it before the engine does."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Whether no process listens on the port; connections in TIME_WAIT do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def port_holder(port: int) -> str:
    """Describe the process that listens on the port: pid and command, or that it belongs to another user."""
    import psutil  # for a message only

    with suppress(psutil.Error, OSError):
        for each in psutil.net_connections(kind="tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port and each.pid:
                command = " ".join(psutil.Process(each.pid).cmdline())
                return f"process {each.pid} ({command[:80]})"
    return "another user's process, or one in another container"
