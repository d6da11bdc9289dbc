"""TCP ports of this machine: find a free one, check one, and find the process that listens on one."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

from servetop.core.errors import EngineError

LOOPBACK = "127.0.0.1"
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""First and last of the ports that the system itself gives to connections, and to sockets without a port."""
_LOWEST = 10_000
_ATTEMPTS = 50


def free_port() -> int:
    """Return a port that is free at the moment; another process may take it before the engine does.

    It is none of those that the system itself gives away, if there are others: an engine may bind its port only
    seconds later.
    """
    for _ in range(_ATTEMPTS):
        port = _drawn_port()
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return int(probe.getsockname()[1])
    raise EngineError("no port is free: give one with --port")


def _drawn_port() -> int:
    """Return a port below those that the system gives away; 0, for one of these, where they are not known."""
    try:
        first = int(EPHEMERAL.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
    return random.SystemRandom().randrange(_LOWEST, first) if first > _LOWEST else 0


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
