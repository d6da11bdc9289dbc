"""The address of the page of --web: the URL that is printed, and the host names that requests may use."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

from servetop.cli.options.output_options import WebOptions

WEB_PORT = 8765
_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """The address of the page, loopback by default, and its permissions."""

    host: str = "127.0.0.1"
    port: int = WEB_PORT
    steer: bool = False
    """Pages may steer the run, and rename and delete recordings; else they are read-only."""


def web_address_of(options: WebOptions) -> WebAddress:
    """Return the address and permissions of the page that the options of --web ask for."""
    return WebAddress(host=options.web_host, port=options.web_port, steer=options.web_steer)


def page_url(address: WebAddress, token: str) -> str:
    """Return the address of the page with its token; with the machine's name if the server listens on all addresses."""
    host = socket.gethostname() if address.host in ("0.0.0.0", "::") else address.host
    return f"http://{f'[{host}]' if ':' in host else host}:{address.port}/?token={token}"


def is_own_name(address: WebAddress, requested: str) -> bool:
    """Whether a Host header may stand for this server; the port is ignored, because it may be forwarded.

    A server on loopback accepts addresses and local names only: any other name may be a foreign one that resolves to
    this machine (DNS rebinding). A server for other machines accepts any name, because it cannot know them all.
    """
    parts = _HOST.fullmatch(requested)
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
