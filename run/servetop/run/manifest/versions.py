"""Versions and facts of the host, which a recording stores."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

PACKAGES = ("servetop", "numpy", "httpx", "httptools", "uvloop", "textual")


def servetop_version() -> str:
    """Return the installed version of servetop; `unknown` in a checkout that was never installed."""
    return _version("servetop")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect a measurement."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def host_facts() -> dict[str, Any]:
    """Return the client machine: name, kernel, number of processors, memory in bytes."""
    return {
        "name": platform.node(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _version(package: str) -> str:
    """Return the version in the name of the folder NAME-VERSION.dist-info, which needs no parser; else by importlib."""
    names = re.compile(rf"{package}-(.+)\.dist-info$")
    return next((found[1] for name in _installed() if (found := names.match(name))), None) or _metadata_version(package)


def _installed() -> Iterator[str]:
    for folder in sys.path:
        with suppress(OSError):
            yield from os.listdir(folder or ".")


def _metadata_version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
