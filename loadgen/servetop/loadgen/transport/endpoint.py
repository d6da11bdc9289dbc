"""The server that requests go to: its parsed URL, the HTTP/1.1 head of a request, and connection errors in one line."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from servetop.core.config import ConnectionConfig
from servetop.engines.control.connection import tls_context
from servetop.engines.control.server_url import ServerUrl

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server and the part of the head that all requests share."""

    host: str
    port: int
    tls: bool
    server: ServerUrl
    """Where the paths of its API are."""
    api_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Additional header fields; an `authorization` among them replaces the API key's."""
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
        """Parse an address as `ServerUrl` does; UsageError if it is invalid."""
        server = ServerUrl.parse(url)
        parts = urlsplit(server.origin)
        return cls(
            host=parts.hostname or "",
            port=parts.port or _PORTS[parts.scheme],
            tls=parts.scheme == "https",
            server=server,
            api_key=api_key,
            headers=headers or {},
            connection=connection or ConnectionConfig(),
        )

    @property
    def address(self) -> str:
        """`host:port`, with an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def head(self, path: str) -> bytes:
        """Return the part of the head that is the same for all requests; the length and the empty line follow it."""
        lines = [f"POST {self.server.target(path)} HTTP/1.1", f"host: {self.address}"]
        lines += [f"{name}: {value}" for name, value in self.fields().items()]
        return "".join(f"{line}\r\n" for line in lines).encode()

    def fields(self) -> dict[str, str]:
        """Return the header fields that all requests share, without `host`."""
        fields = {"content-type": "application/json", "accept": "text/event-stream", "user-agent": "servetop"}
        if self.api_key is not None and "authorization" not in map(str.lower, self.headers):
            fields["authorization"] = f"Bearer {self.api_key}"
        return {**fields, **self.headers}

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS settings, None for plain HTTP."""
        return tls_context(self.connection) if self.tls else None

    def connect_error(self, error: Exception) -> str:
        """Explain in one line why a connection could not be established."""
        match error:
            case ConnectionRefusedError():
                return f"connection refused at {self.address}"
            case socket.gaierror() | UnicodeError():
                return f"unknown host {self.host}: check --url"
            case ssl.SSLCertVerificationError():
                why = error.verify_message
                return f"the certificate of {self.address} is not trusted ({why}): use --ca-cert FILE or --insecure"
            case ssl.SSLError() if "CERTIFICATE_REQUIRED" in (error.reason or ""):
                return f"{self.address} requires a client certificate: use --client-cert and --client-key"
            case ssl.SSLError():
                return f"TLS with {self.address} failed: {error.reason}"
            case OSError() if error.errno in (errno.EMFILE, errno.ENFILE):
                return "too many open files: raise the limit with ulimit -n"
            case OSError() if error.errno == errno.EADDRNOTAVAIL:
                return "no free local port for another connection"
            case _:
                return f"cannot connect to {self.address}: {error}"

    def loss_reason(self, cause: BaseException | None, *, response_started: bool) -> str:
        """Explain in one line why a connection ended before its response did."""
        if isinstance(cause, ssl.SSLError):
            return self.connect_error(cause)
        text = f"the server {'reset' if isinstance(cause, ConnectionResetError) else 'closed'} the connection"
        if response_started:
            return text
        certificate = self.tls and not self.connection.client_cert
        return f"{text} without a response{': does it require --client-cert?' if certificate else ''}"
