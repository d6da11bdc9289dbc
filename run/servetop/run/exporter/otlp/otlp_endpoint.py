"""The address to which metrics are pushed."""

from __future__ import annotations

from urllib.parse import urlsplit

from servetop.core.errors import UsageError

PATH = "/v1/metrics"


def metrics_endpoint(text: str) -> str:
    """Return where metrics are sent: an endpoint without a path gets that of OTLP; UsageError for anything else."""
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"{text!r} is not the address of a collector: use http:// or https://, as in http://otel:4318")
    return text.rstrip("/") + PATH if parts.path in ("", "/") and not parts.query else text
