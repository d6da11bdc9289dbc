"""Versions and host facts that a recording keeps, so that its numbers can be judged later."""

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
    """The installed version; `unknown` in a checkout that was never installed."""
    return _version("servetop")


def versions() -> dict[str, str]:
    """Of Python, and of the packages that shape a measurement."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def host_facts() -> dict[str, Any]:
    """The client machine: name, kernel, processors, memory in bytes."""
    return {
        "name": platform.node(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _version(package: str) -> str:
    """By the name of the folder of its metadata, NAME-VERSION.dist-info, where it has one: that takes no parser."""
    names = re.compile(rf"{package}-(.+)\.dist-info$")
    return next((found[1] for name in _installed() if (found := names.match(name))), None) or _told_version(package)


def _installed() -> Iterator[str]:
    for folder in sys.path:
        with suppress(OSError):
            yield from os.listdir(folder or ".")


def _told_version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
