"""Versions and host facts that a recording keeps, so that its numbers can be judged later."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

PACKAGES = ("servetop", "numpy", "httpx", "httptools", "uvloop", "textual")


def servetop_version() -> str:
    """The installed version; `unknown` in a checkout that was never installed."""
    return _version("servetop")


def versions() -> dict[str, str]:
    """Of Python, and of the packages that shape a measurement."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def host_facts() -> dict[str, Any]:
    """The client machine: name, kernel, processors, memory in bytes."""
    import psutil

    return {
        "name": platform.node(),
        "system": platform.platform(),
        "processors": psutil.cpu_count(),
        "memory": psutil.virtual_memory().total,
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
