"""Connection settings of a server: transport, proxy and TLS.

Proxy credentials come from the environment and stay in memory; the configuration never contains them.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from servetop.core.config import ConnectionConfig
from servetop.core.errors import UsageError

if TYPE_CHECKING:
    import ssl

TRANSPORTS = ("raw", "httpx")
_INSTALL = "pip install 'servetop[proxy]'"


@dataclass(frozen=True, slots=True)
class Route:
    """The resolved connection settings, with the reason for those that the user did not choose."""

    connection: ConnectionConfig
    """`transport` is one of TRANSPORTS; `proxy` is the one to use, with its credentials."""
    remark: str = ""
    """The reason as text for the user, without credentials; empty if there is none."""


def route_to(url: str, connection: ConnectionConfig, environ: Mapping[str, str]) -> Route:
    """Resolve the settings for a server; a proxy or a client certificate selects the httpx transport by default.

    UsageError for an unusable proxy, and if the httpx transport is not installed.
    """
    proxy = connection.proxy or environment_proxy(url, environ)
    if connection.transport == "raw" and not connection.proxy:
        remark = f"the proxy {address_of(proxy)} of the environment is not used: --transport raw" if proxy else ""
        return Route(dataclasses.replace(connection, proxy=None), remark)
    certificate = connection.client_cert if url.startswith("https:") else None
    transport = connection.transport or ("httpx" if proxy or certificate else "raw")
    if transport == "httpx":
        _check_installed()
    if proxy:
        check_proxy(proxy)
    reason = f"the proxy {address_of(proxy)}" if proxy else "the client certificate"
    remark = f"transport httpx, because of {reason}" if transport == "httpx" and not connection.transport else ""
    return Route(dataclasses.replace(connection, transport=transport, proxy=proxy), remark)


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("httpx_aiohttp") is None:
        raise UsageError(f"the httpx transport (for proxies and client certificates) is not installed: {_INSTALL}")


def environment_proxy(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY (lower case first), unless NO_PROXY exempts the host.

    Local servers are always reached directly, as in Go's net/http.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    proxy = next((environ[name] for name in names if environ.get(name)), None)
    if proxy is None or is_loopback(host):
        return None
    exempt = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    if any(_is_exempt(entry.strip().lower(), host, port) for entry in exempt.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Whether the host is `localhost`, in 127.0.0.0/8, ::1, or an unspecified address (0.0.0.0, ::)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


def _is_exempt(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY matches: `*`, a name (with subdomains), an address or network, optionally a port."""
    if entry == "*":
        return True
    name, colon, entry_port = entry.rpartition(":")
    if colon and entry_port.isdecimal() and (name.endswith("]") or ":" not in name):
        if int(entry_port) != port:
            return False
        entry = name
    entry = entry.strip("[]")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        domain = entry.removeprefix("*").removeprefix(".")
        return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def address_of(proxy: str) -> str:
    """Return `host:port` of a proxy's URL, without its credentials."""
    try:
        parts = urlsplit(proxy)
        return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    except ValueError:
        return "(invalid URL)"


def check_proxy(proxy: str) -> None:
    """Raise UsageError, without credentials in its text, for an invalid HTTP proxy."""
    try:
        parts = urlsplit(proxy)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError("invalid proxy address: use http:// or https://, such as http://proxy:3128")


def check_connection(connection: ConnectionConfig, *, attached: bool) -> None:
    """Raise UsageError for settings that conflict, cannot be read, or would record a secret."""
    if connection.transport not in ("", *TRANSPORTS):
        raise UsageError(f"--transport {connection.transport}: give {' or '.join(TRANSPORTS)}")
    if dataclasses.replace(connection, transport="") != ConnectionConfig() and not attached:
        raise UsageError("--proxy, --ca-cert, --client-cert and --insecure are for a server at --url: leave them out")
    if connection.transport == "raw" and connection.proxy:
        raise UsageError("--transport raw does not support proxies: leave out --proxy, or give --transport httpx")
    if connection.client_key and not connection.client_cert:
        raise UsageError("--client-key needs a certificate: give --client-cert too")
    if connection.proxy is not None:
        check_proxy(connection.proxy)
        if "@" in connection.proxy:
            raise UsageError(
                "--proxy contains credentials, which any user of this machine could read: export the whole address as "
                "HTTPS_PROXY (or HTTP_PROXY) instead"
            )
    if connection.ca_cert or connection.client_cert:
        tls_context(connection)


def tls_context(connection: ConnectionConfig) -> ssl.SSLContext:
    """Return the TLS context with CA and client certificates; UsageError for unusable files."""
    import ssl

    files = (connection.ca_cert, connection.client_cert, connection.client_key)
    failure = f"cannot use {' and '.join(file for file in files if file)}"
    try:
        context = ssl.create_default_context(cafile=connection.ca_cert)
        if connection.client_cert:
            context.load_cert_chain(connection.client_cert, connection.client_key, password="")
    except ssl.SSLError as error:
        reason = error.reason or "an encrypted key"
        raise UsageError(f"{failure} ({reason}): give PEM files, with the unencrypted key of the certificate") from None
    except OSError as error:
        raise UsageError(f"{failure}: {error.strerror or error}") from None
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
