"""The addresses of watched servers: on the command line, in a file, or behind one name."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from servetop.core.errors import EngineError, UsageError, system_reason
from servetop.core.text.sanitize import sanitize_line
from servetop.engines.control.server_url import ServerUrl

_NAMED = re.compile(r"([\w.:-]+)\s*=\s*(\S+)")
"""`name = URL`; a URL has a slash before its first equals sign."""
_COMMENT = re.compile(r"(?:^|\s)#.*")
MOST_SERVERS = 500
"""Servers of one watch at most."""
_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedAddress:
    """The address of one server, in its shortest form, and its name in tables."""

    name: str
    url: str
    metrics: str = ""
    """Where its metrics are if it cannot be reached: a Prometheus server with a selector; empty: nowhere else."""

    @classmethod
    def parse(cls, text: str, *, name: str = "") -> WatchedAddress:
        """Parse `URL` or `name = URL`; UsageError for an invalid address."""
        named = _NAMED.fullmatch(text.strip())
        if named is not None:
            name, text = named[1], named[2]
        server = ServerUrl.parse(text)
        parts = urlsplit(server.text)
        return cls(name=name or sanitize_line(f"{parts.netloc}{parts.path}"), url=server.text)


def distinct(addresses: Iterable[WatchedAddress], *, where: str = "") -> tuple[WatchedAddress, ...]:
    """Return the addresses; UsageError if two are the same, have one name, or if there are too many."""
    found = tuple(addresses)
    for kind in ("url", "name"):
        values = [getattr(each, kind) for each in found]
        if (twice := next((value for value in values if values.count(value) > 1), None)) is not None:
            raise UsageError(f"{where}{twice} is given twice: name each server once")
    if len(found) > MOST_SERVERS:
        raise UsageError(f"{where}{len(found)} servers: a watch reads {MOST_SERVERS} at most")
    return found


def read_addresses(path: Path) -> tuple[WatchedAddress, ...]:
    """Return the addresses in a file, one a line, with `#` before comments; UsageError if that is not what it has."""
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {system_reason(error)}: name a file with a server's address in each line") from None
    if len(data) > _FILE_BYTES or b"\0" in data:
        raise UsageError(f"{path} is not a list of addresses: write one a line, as in gpu7 = http://gpu7:8000")
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if text := _COMMENT.sub("", line).strip():
            try:
                found.append(WatchedAddress.parse(text))
            except UsageError as error:
                raise UsageError(f"{path}, line {number}: {error}") from None
    if not found:
        raise UsageError(f"{path} lists no servers: write one address a line, as in gpu7 = http://gpu7:8000")
    return distinct(found, where=f"{path}: ")


async def resolved(address: WatchedAddress) -> Sequence[WatchedAddress]:
    """Return an address for each IP address of its host; EngineError if the name cannot be resolved."""
    parts = urlsplit(address.url)
    host, port = parts.hostname or "", parts.port
    default = 443 if parts.scheme == "https" else 80
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port or default, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise EngineError(f"{host} cannot be resolved ({error}): is the name right? try: getent hosts {host}") from None
    hosts = sorted({str(info[4][0]) for info in infos}, key=_by_version)
    places = [f"[{each}]" if ":" in each else each for each in hosts]
    netlocs = [place if port is None else f"{place}:{port}" for place in places]
    urls = [urlunsplit((parts.scheme, netloc, parts.path, parts.query, "")) for netloc in netlocs]
    if urls == [address.url]:
        return [address]
    return [replace(WatchedAddress.parse(url), name=_name(address, url)) for url in urls]


def check_resolvable(addresses: Iterable[WatchedAddress]) -> None:
    """Raise UsageError for an address whose certificate is that of its name."""
    for each in addresses:
        if each.url.startswith("https:"):
            raise UsageError(
                f"--all-addresses: the certificate of {each.url} is that of its name, not of its addresses: "
                "list the servers in a file"
            )


def _by_version(host: str) -> tuple[int, int]:
    address = ipaddress.ip_address(host.partition("%")[0])
    return address.version, int(address)


def _name(address: WatchedAddress, url: str) -> str:
    """Return `NAME/IP` for a server with a name of its own, else its address."""
    own = WatchedAddress.parse(address.url).name != address.name
    parts = urlsplit(url)
    return f"{address.name}/{parts.hostname}" if own else WatchedAddress.parse(url).name
