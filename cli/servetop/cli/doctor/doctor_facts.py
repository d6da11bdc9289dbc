"""Reads the facts about this machine; a reader may raise any error, which the caller handles."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from servetop.cli.doctor.doctor_checks import Disk, Terminal
from servetop.run import console

CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
TIMER_SLACK = Path("/proc/self/timerslack_ns")
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
CGROUPS = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60
"""Bytes from which a limit of control groups version 1 means no limit."""

_EXTRA = re.compile(r"extra == [\"']([\w-]+)[\"']")
_NOT_FOR_USERS = ("dev", "bench")


def requirements() -> list[str]:
    """Return the requirements of servetop; PackageNotFoundError in a checkout that was never installed."""
    return metadata.requires("servetop") or []


def unmet(needed: Iterable[str]) -> tuple[list[str], list[str]]:
    """Required packages that are missing, and those with an unsupported version; without extras."""
    missing, other = [], []
    for requirement in map(Requirement, needed):
        if not _applies(requirement, extra=""):
            continue
        version = _version(requirement.name)
        if version is None:
            missing.append(requirement.name)
        elif not requirement.specifier.contains(version, prereleases=True):
            other.append(f"{requirement.name} {version} (needs {requirement.specifier})")
    return missing, other


def extras(needed: Iterable[str]) -> dict[str, bool]:
    """Return each extra for users, and whether all its requirements are installed."""
    requirements = [Requirement(text) for text in needed]
    names = {name for each in requirements if each.marker for name in _EXTRA.findall(str(each.marker))}
    return {
        name: all(_version(each.name) is not None for each in requirements if _is_of_extra(each, name))
        for name in sorted(names.difference(_NOT_FOR_USERS))
    }


def _is_of_extra(requirement: Requirement, name: str) -> bool:
    return _applies(requirement, extra=name) and not _applies(requirement, extra="")


def _applies(requirement: Requirement, *, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def hard_file_limit() -> int | None:
    """Return the hard limit of open files; None if there is none."""
    try:
        import resource
    except ImportError:
        return None
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def local_ports() -> tuple[int, int] | None:
    """First and last port for the client's end of a connection."""
    bounds = _read(PORT_RANGE).split()
    return (int(bounds[0]), int(bounds[1])) if len(bounds) == 2 else None


def clock_source() -> tuple[str | None, float | None]:
    """Return the kernel's clock source, and this process's timer slack in seconds."""
    slack = _read(TIMER_SLACK)
    return _read(CLOCK_SOURCE) or None, int(slack) / 1e9 if slack.isdigit() else None


def processors() -> tuple[int, float | None]:
    """Processors that this process may use, and the load of the last minute."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return usable, os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def group_limits(root: Path = CGROUPS) -> tuple[float | None, int | None]:
    """Processors and bytes of memory that the control group (version 2 or 1) allows; None for no limit."""
    quota, _, period = _read(root / "cpu.max").partition(" ")
    if not quota:
        quota, period = _read(root / "cpu/cpu.cfs_quota_us"), _read(root / "cpu/cpu.cfs_period_us")
    memory = _read(root / "memory.max") or _read(root / "memory/memory.limit_in_bytes")
    share = int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None
    size = int(memory) if memory.isdigit() else NO_LIMIT
    return share, size if size < NO_LIMIT else None


def recordings_disk(folder: Path) -> Disk:
    """Return the disk of the recordings folder; of its nearest parent if it does not exist yet."""
    import psutil

    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    mounts = {part.mountpoint: part.fstype for part in psutil.disk_partitions(all=True)}
    return Disk(
        folder=str(folder),
        writable=existing.is_dir() and os.access(existing, os.W_OK | os.X_OK),
        free=float(shutil.disk_usage(existing).free),
        file_system=file_system_of(existing.resolve(), mounts),
    )


def file_system_of(path: Path, mounts: Mapping[str, str]) -> str | None:
    """Return the type of the file system mounted nearest above a path."""
    return next((mounts[str(each)] for each in (path, *path.parents) if str(each) in mounts), None)


def terminal() -> Terminal:
    """Return the terminal that this process writes to."""
    size = shutil.get_terminal_size()
    return Terminal(
        is_terminal=console.is_terminal(),
        columns=size.columns,
        lines=size.lines,
        encoding=console.encoding(),
        colours=os.environ.get("COLORTERM") or os.environ.get("TERM", ""),
    )


def runtimes() -> list[str]:
    """Return the container runtimes in PATH."""
    return [path for name in ("docker", "podman") if (path := shutil.which(name))]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
