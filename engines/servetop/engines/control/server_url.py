"""The address of a server as users write it: with a base path, a query, or the full path of an endpoint."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit

from servetop.core.errors import UsageError

_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?")
"""A segment of a path that names the version of an API, such as `v1`, `v4` or `v1beta`."""
_ENDPOINTS = (
    (re.compile(r"/chat/completions$"), "chat"),
    (re.compile(r"/completions$"), "completions"),
    (re.compile(r"/responses$"), "responses"),
    (re.compile(r"/v2/models/[^/]+(?:/versions/\d+)?/generate(?:_stream)?$"), "generate"),
    (re.compile(r"/(?:generate|generate_stream|completion)$"), "generate"),
    (re.compile(r"/models$"), ""),
)
"""Endings of a full path, and the endpoint that each names."""
_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+$")
"""The end of a path that precedes the endpoint without a version, as on Azure."""
_PAGES = re.compile(r"/(?:metrics|health|version|docs|openapi\.json)$")
"""Pages that lie beside the API."""
_SAFE = "/%:=&,+@;~$!*'()[]?-._"
_METRICS_PAGES = re.compile(r"/(?:prometheus/metrics|metrics|graph|api/v1(?:/query)?)$")
"""Full paths of metrics pages (TensorRT-LLM's is `/prometheus/metrics`), and of Prometheus' API."""
V1 = "/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUrl:
    """Where a server's API and its pages are."""

    origin: str
    """Scheme, host and port."""
    api: str
    """Path of the API, which takes the place of `/v1` in a path: `/v1`, `/api/paas/v4`, or empty."""
    prefix: str
    """Path before the server's other pages, such as `/metrics`."""
    query: str = ""
    """Parameters of every request, with their question mark, such as `?api-version=2024-06-01`."""
    endpoint: str = ""
    """The endpoint that the address names, as in `…/v1/chat/completions`; empty if it names none."""
    other_api: str | None = None
    """Another path that may be meant by this address; None if it is unambiguous."""

    @classmethod
    def parse(cls, text: str) -> ServerUrl:
        """Parse an address; UsageError, with the next step, if it is invalid or contains a password.

        Without a version in its path, `/v1` follows the path, or nothing does: `other_api` is the second choice, which
        is `/v1` for a deployment of Azure.
        """
        origin, path, query = _split(text)
        ending = next(((found, name) for pattern, name in _ENDPOINTS if (found := pattern.search(path))), None)
        if ending is not None:
            found, endpoint = ending
            path = path[: found.start()]
            native = endpoint == "generate"
            api, other = (f"{path}{V1}", None) if native else (path, None)
            return cls(
                origin=origin,
                api=api,
                prefix=path if native else _prefix(path),
                query=query,
                endpoint=endpoint,
                other_api=other,
            )
        path = _PAGES.sub("", path)
        segments = path.split("/")
        if _VERSION.fullmatch(segments[-1]):
            return cls(origin=origin, api=path, prefix=_prefix(path), query=query)
        if any(map(_VERSION.fullmatch, segments)):
            return cls(origin=origin, api=path, prefix=_prefix(path), query=query, other_api=f"{path}{V1}")
        apis = (path, f"{path}{V1}") if _DEPLOYMENT.search(path) else (f"{path}{V1}", path)
        return cls(origin=origin, api=apis[0], prefix=path, query=query, other_api=apis[1])

    @classmethod
    def page(cls, text: str) -> ServerUrl:
        """Parse the address of a server with metrics: its path, whatever it contains, precedes those of its pages."""
        origin, path, query = _split(text)
        path = _METRICS_PAGES.sub("", path)
        return cls(origin=origin, api=f"{path}{V1}", prefix=path, query=query)

    @property
    def text(self) -> str:
        """The address in its shortest form: `parse` reads the same from it."""
        return _text_of(self)

    @property
    def other(self) -> ServerUrl | None:
        """The server if `other_api` is meant; None if the address is unambiguous."""
        if self.other_api is None:
            return None
        path = self.other_api
        prefix = path.removesuffix(V1) if path.endswith(V1) else _prefix(path)
        return replace(self, api=path, prefix=prefix, other_api=None)

    def target(self, path: str) -> str:
        """Return the path and query of a request, from a path such as `/v1/models` or `/metrics`."""
        whole = self.api + path.removeprefix(V1) if path.startswith(f"{V1}/") else self.prefix + path
        if not self.query:
            return whole
        return f"{whole}&{self.query[1:]}" if "?" in whole else whole + self.query

    def where(self, path: str) -> str:
        """Return the URL of a path for messages, without the query, which may hold a secret."""
        return self.origin + self.target(path).partition("?")[0]


@functools.lru_cache(256)
def _text_of(server: ServerUrl) -> str:
    bases = (server.prefix, server.api, f"{server.api}/chat/completions")
    for base in bases:
        text = f"{server.origin}{base}{server.query}"
        parsed = ServerUrl.parse(text)
        if (parsed.api, parsed.prefix) == (server.api, server.prefix):
            return text
    return f"{server.origin}{server.prefix}{server.query}"


def _prefix(path: str) -> str:
    """Return the part of a path before the version of the API; all of it if it names none."""
    segments = path.split("/")
    versions = [index for index, segment in enumerate(segments) if _VERSION.fullmatch(segment)]
    return "/".join(segments[: versions[-1]]) if versions else path


def _split(text: str) -> tuple[str, str, str]:
    """Return origin, path without a trailing slash, and query; UsageError if the address is invalid."""
    stripped = text.strip()
    with_scheme = stripped if "://" in stripped else f"http://{stripped}"
    try:
        parts = urlsplit(with_scheme)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(letter.isspace() for letter in stripped):
        raise UsageError(f"invalid server address {_without_query(text)!r}: use one such as http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise UsageError(
            "the address contains a password, which would be recorded: give the key with --api-key-env NAME"
        )
    path, query = quote(parts.path, safe=_SAFE).rstrip("/"), quote(parts.query, safe=_SAFE)
    return f"{parts.scheme}://{parts.netloc}", path, f"?{query}" if query else ""


def _without_query(text: str) -> str:
    return text.partition("?")[0]
