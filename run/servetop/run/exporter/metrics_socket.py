"""The port at which the metrics of a run are served, taken before the run starts."""

from __future__ import annotations

import socket

from servetop.core.errors import UsageError, system_reason

_BACKLOG = 16
_EVERY_ADDRESS = ("0.0.0.0", "::")


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a host and port, 0 for a free one; UsageError if it cannot."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
    except OSError as error:
        raise _refusal(host, port, error) from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError as error:
        found.close()
        raise _refusal(host, port, error) from error
    return found


def metrics_url(listening: socket.socket) -> str:
    """Return the address of the metrics; with the machine's name if the socket listens at all addresses."""
    host, port = listening.getsockname()[:2]
    host = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def _refusal(host: str, port: int, error: OSError) -> UsageError:
    why = system_reason(error)
    return UsageError(
        f"cannot serve metrics at {host}:{port} ({why}): try another --prometheus-port, or 0 for a free one"
    )
