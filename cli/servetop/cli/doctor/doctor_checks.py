"""Pure functions from facts about a machine to findings of `servetop doctor`; a fact of None is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from servetop.core.system.scheduling import HOW_TO_GRANT
from servetop.core.text import formats
from servetop.core.units import GIB
from servetop.engines.inventory import GpuMemory

STREAMS = 10_000
"""Requests in flight that a client machine should be able to hold."""
SPARE_FILES = 200
"""Open files in addition to one for each stream."""
FEWEST_FILES = 512
"""Open files that even a small run needs."""
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
"""Clock sources that take a microsecond or more to read."""
NETWORK_FILE_SYSTEMS = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse.glusterfs",
    "fuse.sshfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
)
LEAST_DISK, ENOUGH_DISK = 100e6, 2e9
"""Bytes for a short run, and for an hour with many requests."""
MUCH_SLACK = 1e-3
"""Timer slack in seconds from which requests are sent noticeably late."""


class Status(StrEnum):
    """The result of a check, best first."""

    OK = "ok"
    NOTE = "note"
    FIX = "fix"
    """servetop cannot run until this is fixed."""


class Finding(NamedTuple):
    """One line of the report."""

    name: str
    status: Status
    found: str
    advice: str = ""
    """What to do; empty if nothing."""


def verdict(findings: Sequence[Finding]) -> Status:
    """Return the worst status of all findings; OK without findings."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)


def python_finding(version: tuple[int, int, int], servetop: str) -> Finding:
    """Return the versions of Python and of servetop."""
    text = f"{'.'.join(map(str, version))}, servetop {servetop}"
    if version < (3, 11, 0):
        return Finding("python", Status.FIX, text, "servetop needs Python 3.11 or later: install it there")
    return Finding("python", Status.OK, text)


def packages_finding(missing: Sequence[str], other: Sequence[str]) -> Finding:
    """Required packages that are missing or have an unsupported version."""
    troubles = [*(f"{name} is missing" for name in missing), *other]
    if troubles:
        return Finding(
            "packages", Status.FIX, ", ".join(troubles), "install servetop again: pip install --upgrade servetop"
        )
    return Finding("packages", Status.OK, "all required packages are installed")


def checkout_finding() -> Finding:
    """Return the finding for a checkout, whose requirements are unknown until it is installed."""
    return Finding("packages", Status.NOTE, "servetop runs from a checkout that was not installed", "pip install -e .")


def extras_finding(extras: Mapping[str, bool]) -> Finding:
    """Return which optional extras are installed."""
    there = ", ".join(name for name, installed in extras.items() if installed) or "none"
    absent = [name for name, installed in extras.items() if not installed]
    hint = f"; not installed: {', '.join(absent)} (pip install 'servetop[{absent[0]}]')" if absent else ""
    return Finding("extras", Status.OK, there + hint)


def engine_findings(here: Mapping[str, str], absent: Sequence[str]) -> list[Finding]:
    """Return a finding for each engine that can be started here, with its command, and one for all others."""
    found = [Finding(f"engine {name}", Status.OK, command) for name, command in here.items()]
    if absent:
        advice = "servetop engines shows how to install them"
        found.append(Finding("engines", Status.NOTE, f"not installed here: {', '.join(absent)}", advice))
    return found


def gpu_findings(
    devices: Sequence[GpuMemory], *, driver: str, trouble: str, unreadable: Mapping[int, str] | None = None
) -> list[Finding]:
    """Return the driver, each device with its memory, and each that cannot be read; `trouble` is why none can."""
    lost = unreadable or {}
    if trouble:
        advice = "run nvidia-smi: the driver must be loaded and match its library"
        return [Finding("gpu", Status.FIX, trouble, advice)]
    if not devices and not lost:
        advice = "the simulator needs none; use --url for an engine on another machine"
        return [Finding("gpu", Status.NOTE, "no readable GPU", advice)]
    found = {each.index: _device(each) for each in devices}
    found |= {index: _lost_device(index, reason) for index, reason in lost.items()}
    first = [Finding("gpu driver", Status.OK, driver)] if driver else []
    return [*first, *(found[index] for index in sorted(found))]


def _lost_device(index: int, reason: str) -> Finding:
    advice = "run nvidia-smi: the card may have fallen off the bus; runs do not sample it"
    return Finding(f"gpu {index}", Status.NOTE, f"cannot be read: {reason}", advice)


def _device(device: GpuMemory) -> Finding:
    index = device.index
    if device.used is None or device.total is None:
        return Finding(f"gpu {index}", Status.OK, f"{device.name}, memory not reported")
    free = device.total - device.used
    text = f"{device.name}, {free / GIB:.1f} of {device.total / GIB:.1f} GiB free"
    if not device.total or free >= device.total / 2:
        return Finding(f"gpu {index}", Status.OK, text)
    by = f", the rest is used by {'; '.join(device.holders)}" if device.holders else ""
    advice = "stop those processes, or give the engine a smaller share of the memory"
    return Finding(f"gpu {index}", Status.NOTE, text + by, advice)


def port_finding(port: int, purpose: str, *, holder: str | None) -> Finding:
    """Whether a default port is free; a run does not depend on it."""
    if holder is None:
        return Finding(f"port {port}", Status.OK, f"free ({purpose})")
    return Finding(f"port {port}", Status.NOTE, f"in use by {holder}", f"use another port for {purpose}")


def free_port_finding(port: int | None) -> Finding:
    """Whether the system has a free port, which every started engine needs."""
    if port is None:
        advice = "close the programs that use them, or widen net.ipv4.ip_local_port_range"
        return Finding("free ports", Status.FIX, "none", advice)
    return Finding("free ports", Status.OK, "available for engines")


def ephemeral_finding(low_high: tuple[int, int] | None) -> Finding:
    """Ports for the client's end of connections: each connection to one server needs one."""
    if low_high is None:
        return Finding("connections", Status.OK, "range of local ports unknown")
    low, high = low_high
    count = high - low + 1
    text = f"{count:,} local ports ({low}-{high})"
    if count < STREAMS + SPARE_FILES:
        advice = f"for {STREAMS:,} streams: sysctl -w net.ipv4.ip_local_port_range='1024 65535'"
        return Finding("connections", Status.NOTE, text, advice)
    return Finding("connections", Status.OK, text)


def files_finding(hard_limit: int | None) -> Finding:
    """Open files: the sender raises its soft limit, so the hard limit applies."""
    if hard_limit is None:
        return Finding("open files", Status.OK, "no known limit")
    text = f"at most {hard_limit:,} open files"
    if hard_limit >= STREAMS + SPARE_FILES:
        return Finding("open files", Status.OK, text)
    status = Status.NOTE if hard_limit >= FEWEST_FILES else Status.FIX
    return Finding(
        "open files", status, text, f"for {STREAMS:,} streams raise the hard limit (ulimit -Hn) to {2 * STREAMS}"
    )


def clock_finding(source: str | None, *, slack: float | None) -> Finding:
    """Return the kernel's clock source, and its timer slack in seconds."""
    text = f"clock source {source or 'unknown'}"
    text += "" if slack is None else f", timers to {slack * 1e6:.0f} µs"
    if source in SLOW_CLOCKS:
        return Finding("clock", Status.NOTE, text, "slow to read, so times are imprecise: boot with clocksource=tsc")
    if slack is not None and slack >= MUCH_SLACK:
        return Finding("clock", Status.NOTE, text, "requests are sent late: start servetop with a smaller timer slack")
    return Finding("clock", Status.OK, text)


def processors_finding(count: int, load: float | None) -> Finding:
    """Return the processors that servetop may use, and the load average of the last minute."""
    text = f"{count} processor{'s' * (count != 1)}" + ("" if load is None else f", load {load:.1f}")
    if count < 2:
        advice = "sender and engine share it, so latencies of an engine on this machine include the sender"
        return Finding("processors", Status.NOTE, text, advice)
    if load is not None and load > 0.75 * count:
        return Finding("processors", Status.NOTE, text, "other programs use this machine and affect the measurement")
    return Finding("processors", Status.OK, text)


def priority_finding(*, linux: bool, permitted: bool) -> Finding:
    """Whether the senders may run in the real-time class, ahead of an engine on the same machine."""
    if permitted:
        return Finding("priority", Status.OK, "senders run in the real-time class, ahead of an engine on this machine")
    if not linux:
        return Finding("priority", Status.OK, "this system has no real-time class for senders")
    text = "senders may not use the real-time class, and wait for a processor behind an engine on this machine"
    return Finding("priority", Status.NOTE, text, f"permit it: {HOW_TO_GRANT}")


def limits_finding(processors: float | None, memory: int | None) -> Finding:
    """Return the limits of the container or control group; None for no limit."""
    parts = [] if processors is None else [f"{processors:g} processors"]
    parts += [] if memory is None else [f"{formats.memory(memory)} of memory"]
    text = f"limited to {' and '.join(parts)}" if parts else "none"
    if processors is not None and processors < 2:
        advice = "the sender is throttled: give the container at least 2 processors"
        return Finding("limits", Status.NOTE, text, advice)
    return Finding("limits", Status.OK, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The disk of the recordings folder."""

    folder: str
    writable: bool
    free: float
    """Bytes."""
    file_system: str | None
    """Type as in the mount table, such as `ext4` or `nfs4`; None if unknown."""


def disk_finding(disk: Disk) -> Finding:
    """The free space, and whether SQLite's write-ahead log works (sqlite.org/wal.html: not on network file systems)."""
    text = f"{disk.folder} ({disk.file_system or 'unknown file system'}, {formats.memory(disk.free)} free)"
    elsewhere = "set SERVETOP_RECORDINGS to a folder on a local disk"
    if not disk.writable:
        return Finding("recordings", Status.FIX, f"{text} cannot be written", elsewhere)
    if disk.free < LEAST_DISK:
        return Finding("recordings", Status.FIX, text, f"the disk is full: free some space, or {elsewhere}")
    if disk.file_system in NETWORK_FILE_SYSTEMS:
        advice = f"SQLite cannot share a growing file over a network: {elsewhere}"
        return Finding("recordings", Status.NOTE, text, advice)
    if disk.free < ENOUGH_DISK:
        return Finding("recordings", Status.NOTE, text, "a long run needs more space: free some")
    return Finding("recordings", Status.OK, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The terminal that the dashboard would use."""

    is_terminal: bool
    columns: int = 80
    lines: int = 24
    encoding: str = "utf-8"
    colours: str = ""
    """`COLORTERM`, else `TERM`."""


def terminal_finding(terminal: Terminal) -> Finding:
    """Return the size, encoding and colours of the terminal."""
    if not terminal.is_terminal:
        return Finding("terminal", Status.NOTE, "none", "the dashboard needs one: run with --headless here")
    text = f"{terminal.columns}×{terminal.lines}, {terminal.encoding}, {terminal.colours or 'no TERM'}"
    if terminal.encoding.lower().replace("-", "") != "utf8":
        return Finding("terminal", Status.NOTE, text, "charts need Unicode: export LC_ALL=C.UTF-8")
    if terminal.columns < 80 or terminal.lines < 24:
        return Finding("terminal", Status.NOTE, text, "the dashboard needs at least 80×24: enlarge the window")
    if terminal.colours in ("", "dumb"):
        return Finding("terminal", Status.NOTE, text, "no colours: export TERM=xterm-256color")
    return Finding("terminal", Status.OK, text)


def runtimes_finding(found: Sequence[str]) -> Finding:
    """Return the container runtimes, needed for --launcher."""
    return Finding("containers", Status.OK, ", ".join(found) or "no docker, no podman: engines run as programs")
