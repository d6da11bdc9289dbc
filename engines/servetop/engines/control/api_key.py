"""The API key in an environment variable."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.core.errors import UsageError


def key_from(variable: str | None, environ: Mapping[str, str], *, option: str) -> str | None:
    """Return the key in a variable that `option` names, if any; UsageError if it holds none."""
    if variable is None:
        return None
    key = environ.get(variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise UsageError(f"the environment variable {variable} ({option}) holds no API key: export it")
    return key
