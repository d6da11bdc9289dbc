"""Where requests go: a URL taken apart, and the HTTP/1.1 head of a request."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from servetop.core.config import ConnectionConfig
from servetop.core.errors import UsageError
from servetop.engines.control.connection import tls_context

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
    connection: ConnectionConfig = ConnectionConfig()

    @classmethod
    def parse(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: ConnectionConfig | None = None,
    ) -> Endpoint:
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
            connection=connection or ConnectionConfig(),
        )

    @property
    def address(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def head(self, path: str) -> bytes:
        """The part of a request's head that is the same for all; the length and the empty line are to follow."""
        lines = [f"POST {self.prefix}{path} HTTP/1.1", f"host: {self.address}"]
        lines += [f"{name}: {value}" for name, value in self.fields().items()]
        return "".join(f"{line}\r\n" for line in lines).encode()

    def fields(self) -> dict[str, str]:
        """The header fields that all requests share, but `host`."""
        fields = {"content-type": "application/json", "accept": "text/event-stream", "user-agent": "servetop"}
        if self.api_key is not None and "authorization" not in map(str.lower, self.headers):
            fields["authorization"] = f"Bearer {self.api_key}"
        return {**fields, **self.headers}

    def tls_context(self) -> ssl.SSLContext | None:
        """Whom to trust, or None for plain HTTP."""
        return tls_context(self.connection) if self.tls else None

    def why(self, error: Exception) -> str:
        """One line for a connection that could not be made."""
        match error:
            case ConnectionRefusedError():
                return f"connection refused at {self.address}"
            case socket.gaierror() | UnicodeError():
                return f"no such host: {self.host}: is the name in --url right?"
            case ssl.SSLCertVerificationError():
                why = error.verify_message
                return f"the certificate of {self.address} is not trusted ({why}): give --ca-cert FILE, or --insecure"
            case ssl.SSLError() if "CERTIFICATE_REQUIRED" in (error.reason or ""):
                return f"{self.address} wants a client certificate: give --client-cert and --client-key"
            case ssl.SSLError():
                return f"TLS with {self.address} failed: {error.reason}"
            case OSError() if error.errno in (errno.EMFILE, errno.ENFILE):
                return "too many open files: raise the limit with ulimit -n"
            case OSError() if error.errno == errno.EADDRNOTAVAIL:
                return "no local port is free for another connection"
            case _:
                return f"cannot connect to {self.address}: {error}"

    def lost(self, cause: BaseException | None, *, heard: bool) -> str:
        """One line for a connection that ended before its answer did."""
        if isinstance(cause, ssl.SSLError):
            return self.why(cause)
        words = f"the server {'reset' if isinstance(cause, ConnectionResetError) else 'closed'} the connection"
        if heard:
            return words
        certificate = self.tls and not self.connection.client_cert
        return f"{words} without an answer{': does it want a --client-cert?' if certificate else ''}"
