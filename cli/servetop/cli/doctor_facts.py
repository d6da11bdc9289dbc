"""What `servetop doctor` reads of the machine; a reader may fail in any way, the caller sees to that."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from servetop.cli import console
from servetop.cli.doctor_checks import Disk, Terminal

CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
TIMER_SLACK = Path("/proc/self/timerslack_ns")
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
CGROUPS = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60
"""Bytes: what version 1 of control groups says where there is none."""

_REQUIREMENT = re.compile(r"^(?P<name>[\w.-]+)(?P<bounds>[^;]*)(;(?P<marker>.*))?$")
_FLOOR = re.compile(r">=\s*(\d+(?:\.\d+)*)")
_EXTRA = re.compile(r"extra\s*==\s*[\"']([\w-]+)[\"']")
_NOT_FOR_USERS = ("dev", "bench")


def requirements() -> list[str]:
    """What servetop says that it needs; PackageNotFoundError in a checkout that was never installed."""
    return metadata.requires("servetop") or []


def unmet(needed: Iterable[str]) -> tuple[list[str], list[str]]:
    """Packages that are missing and those that are too old, of the requirements that belong to no extra."""
    missing, old = [], []
    for name, floor, extra in _parsed(needed):
        version = _version(name)
        if extra is None and version is None:
            missing.append(name)
        elif extra is None and version is not None and numbers(version) < numbers(floor):
            old.append(f"{name} {version} (needs {floor})")
    return missing, old


def extras(needed: Iterable[str]) -> dict[str, bool]:
    """Each extra that a user may want, and whether all that it needs is installed."""
    found: dict[str, bool] = {}
    for name, _, extra in _parsed(needed):
        if extra is not None and extra not in _NOT_FOR_USERS:
            found[extra] = found.get(extra, True) and _version(name) is not None
    return dict(sorted(found.items()))


def _parsed(needed: Iterable[str]) -> Iterator[tuple[str, str, str | None]]:
    """Name, floor and extra of each requirement that concerns this platform."""
    for text in needed:
        match = _REQUIREMENT.match(text)
        marker = (match["marker"] or "") if match else ""
        if match and not ("sys_platform" in marker and sys.platform == "win32"):
            floor, extra = _FLOOR.search(match["bounds"]), _EXTRA.search(marker)
            yield match["name"], floor[1] if floor else "0", extra[1] if extra else None


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, to compare by: `13.580.82` → (13, 580, 82); trailing zeros do not count."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in found[0].split(".")] if found else []
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def hard_file_limit() -> int | None:
    """Most open files that a process may ask for; None: as many as it likes, or the system has no such limit."""
    try:
        import resource
    except ImportError:
        return None
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def local_ports() -> tuple[int, int] | None:
    """First and last port for the client's end of a connection."""
    words = _read(PORT_RANGE).split()
    return (int(words[0]), int(words[1])) if len(words) == 2 else None


def clock_source() -> tuple[str | None, float | None]:
    """The kernel's clock source, and this process's timer slack in seconds."""
    slack = _read(TIMER_SLACK)
    return _read(CLOCK_SOURCE) or None, int(slack) / 1e9 if slack.isdigit() else None


def processors() -> tuple[int, float | None]:
    """Processors that this process may use, and the load of the last minute."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return usable, os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def group_limits(root: Path = CGROUPS) -> tuple[float | None, int | None]:
    """Processors and bytes that the control group allows, by version 2 or version 1 of its files; None: no limit."""
    quota, _, period = _read(root / "cpu.max").partition(" ")
    if not quota:
        quota, period = _read(root / "cpu/cpu.cfs_quota_us"), _read(root / "cpu/cpu.cfs_period_us")
    memory = _read(root / "memory.max") or _read(root / "memory/memory.limit_in_bytes")
    share = int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None
    size = int(memory) if memory.isdigit() else NO_LIMIT
    return share, size if size < NO_LIMIT else None


def recordings_disk(folder: Path) -> Disk:
    """The place of recordings, which may not exist yet: then the nearest folder above it that does."""
    import psutil

    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    mounts = {part.mountpoint: part.fstype for part in psutil.disk_partitions(all=True)}
    return Disk(
        folder=str(folder),
        writable=there.is_dir() and os.access(there, os.W_OK | os.X_OK),
        free=float(shutil.disk_usage(there).free),
        file_system=file_system_of(there.resolve(), mounts),
    )


def file_system_of(path: Path, mounts: Mapping[str, str]) -> str | None:
    """The type of the file system mounted nearest above a path."""
    return next((mounts[str(each)] for each in (path, *path.parents) if str(each) in mounts), None)


def terminal() -> Terminal:
    """The terminal that this process writes to."""
    size = shutil.get_terminal_size()
    return Terminal(
        is_terminal=console.is_terminal(),
        columns=size.columns,
        lines=size.lines,
        encoding=console.encoding(),
        colours=os.environ.get("COLORTERM") or os.environ.get("TERM", ""),
    )


def runtimes() -> list[str]:
    """Container runtimes on the path."""
    return [path for name in ("docker", "podman") if (path := shutil.which(name))]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
