"""Where requests go: a URL taken apart, and the HTTP/1.1 head of a request."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from servetop.core.errors import UsageError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server, and what every request's head has in common."""

    host: str
    port: int
    tls: bool
    prefix: str
    """Path that stands before the wire's own, such as `/proxy/7`; empty for most servers."""
    api_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent besides the usual ones; an `authorization` among them takes the place of the key's."""

    @classmethod
    def parse(cls, url: str, *, api_key: str | None = None, headers: Mapping[str, str] | None = None) -> Endpoint:
        """From `http://host:port/prefix`; a trailing `/v1` is dropped, because the wire's own path begins with it."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as wrong:
            raise UsageError(f"{url!r} is no URL ({wrong}): write http://host:port") from None
        if parts.scheme not in _PORTS or not parts.hostname or not parts.path.isascii() or " " in parts.path:
            raise UsageError(f"{url!r} is no URL of a server: write http://host:port")
        return cls(
            host=parts.hostname,
            port=port or _PORTS[parts.scheme],
            tls=parts.scheme == "https",
            prefix=parts.path.rstrip("/").removesuffix("/v1"),
            api_key=api_key,
            headers=headers or {},
        )

    @property
    def address(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def head(self, path: str) -> bytes:
        """The part of a request's head that is the same for all; the length and the empty line are to follow."""
        lines = [
            f"POST {self.prefix}{path} HTTP/1.1",
            f"host: {self.address}",
            "content-type: application/json",
            "accept: text/event-stream",
            "user-agent: servetop",
        ]
        if self.api_key is not None and "authorization" not in map(str.lower, self.headers):
            lines.append(f"authorization: Bearer {self.api_key}")
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "".join(f"{line}\r\n" for line in lines).encode()

    def tls_context(self) -> ssl.SSLContext | None:
        """The system's trust, or None for plain HTTP."""
        return ssl.create_default_context() if self.tls else None

    def why(self, error: Exception) -> str:
        """One line for a connection that could not be made."""
        match error:
            case ConnectionRefusedError():
                return f"connection refused at {self.address}"
            case socket.gaierror() | UnicodeError():
                return f"no such host: {self.host}: is the name in --url right?"
            case ssl.SSLCertVerificationError():
                return (
                    f"the certificate of {self.address} is not trusted ({error.verify_message}): "
                    "set SSL_CERT_FILE to the file of who signed it"
                )
            case ssl.SSLError():
                return f"TLS with {self.address} failed: {error.reason}"
            case OSError() if error.errno in (errno.EMFILE, errno.ENFILE):
                return "too many open files: raise the limit with ulimit -n"
            case OSError() if error.errno == errno.EADDRNOTAVAIL:
                return "no local port is free for another connection"
            case _:
                return f"cannot connect to {self.address}: {error}"
