"""HTTP headers that users add to every request, on the command line or from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN = ("host", "content-length", "transfer-encoding", "connection", "content-type")


def parse_headers(texts: Sequence[str]) -> dict[str, str]:
    """Parse NAME:VALUE texts; UsageError for headers that servetop sets itself."""
    headers: dict[str, str] = {}
    for text in texts:
        name, colon, value = (part.strip() for part in text.partition(":"))
        if not colon or not _NAME.fullmatch(name) or not _is_sendable(value):
            raise UsageError(f"--header {name}: give NAME:VALUE, as in 'X-Tenant: blue'")
        _refuse_own(name, "--header")
        headers[name] = value
    return headers


def parse_header_env(texts: Sequence[str], *, option: str = "--header-env") -> dict[str, str]:
    """Parse NAME=VAR texts into environment variables by header."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, variable in pairs:
        if not equals or not _NAME.fullmatch(name) or not variable:
            raise UsageError(f"{option} {name}: give NAME=VAR, as in X-Tenant=TENANT")
        _refuse_own(name, option)
    return {name: variable for name, _, variable in pairs}


def all_headers(workload: WorkloadConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Headers to send with every request; UsageError when a variable of `header_env` is unset or not a valid value."""
    return {**workload.headers, **header_values(workload.header_env, environ, option="--header-env")}


def header_values(variables: Mapping[str, str], environ: Mapping[str, str], *, option: str) -> dict[str, str]:
    """Return the values of headers from environment variables; UsageError when one is unset or not a valid value."""
    values = {name: environ.get(variable, "").strip() for name, variable in variables.items()}
    for name, value in values.items():
        if not value or not _is_sendable(value):
            raise UsageError(
                f"the environment variable {variables[name]} ({option} {name}) is unset or not printable ASCII: "
                "export it"
            )
    return values


def _is_sendable(value: str) -> bool:
    return value.isprintable() and value.isascii()


def _refuse_own(name: str, option: str) -> None:
    if name.lower() in _OWN:
        raise UsageError(f"{option} {name}: servetop sets this one itself: leave it out")
