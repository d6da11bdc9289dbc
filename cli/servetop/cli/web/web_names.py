"""By which names the page of --web may be asked for, and by which it is announced."""

from __future__ import annotations

import ipaddress
import re
import socket

from servetop.cli.web.web import WebAddress

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")


def page_url(address: WebAddress, token: str) -> str:
    """The page with the token that opens it; for all addresses (0.0.0.0) the machine's name stands."""
    host = socket.gethostname() if address.host in ("0.0.0.0", "::") else address.host
    return f"http://{f'[{host}]' if ':' in host else host}:{address.port}/?token={token}"


def is_own_name(address: WebAddress, asked: str) -> bool:
    """A Host header may stand for this server, whatever its port, which may be forwarded.

    A server of this machine alone goes by addresses and local names: any other may be a stranger's that resolves to
    this machine (DNS rebinding). One for other machines may have names that nobody here knows.
    """
    parts = _HOST.fullmatch(asked)
    if parts is None:
        return False
    name = (parts["ipv6"] or parts["name"]).lower().rstrip(".")
    local = {"localhost", address.host.lower(), socket.gethostname().lower()}
    return name in local or _is_address(name) or not (address.host == "localhost" or _is_loopback(address.host))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_loopback
