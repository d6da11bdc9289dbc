"""What `servetop doctor` thinks of a machine: pure functions from facts, of which None is not known, to findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from servetop.core.units import GIB

STREAMS = 10_000
"""Requests in flight that a client machine should be able to hold."""
SPARE_FILES = 200
"""Open files besides one for each stream."""
FEWEST_FILES = 512
"""Below it not even a small run has room."""
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
"""Clock sources of which one reading takes a microsecond or more."""
NETWORK_FILE_SYSTEMS = (
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre", "nfs", "nfs4", "smb3",
    "smbfs",
)  # fmt: skip
LEAST_DISK, ENOUGH_DISK = 100e6, 2e9
"""Bytes: for a short run; for an hour with many requests."""
MUCH_SLACK = 1e-3
"""Seconds that a timer may be late without anybody's fault."""


class Status(StrEnum):
    """How a check came out, best first."""

    OK = "ok"
    NOTE = "note"
    FIX = "fix"
    """servetop cannot do its work before this is done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    name: str
    status: Status
    found: str
    advice: str = ""
    """What to do; empty when there is nothing to do."""


def verdict(findings: Sequence[Finding]) -> Status:
    """The worst of all; OK when there are none."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)


def python_finding(version: tuple[int, int, int], servetop: str) -> Finding:
    """The interpreter and servetop's own version."""
    words = f"{'.'.join(map(str, version))}, servetop {servetop}"
    if version < (3, 11, 0):
        return Finding("python", Status.FIX, words, "servetop needs Python 3.11 or later: install it in such a one")
    return Finding("python", Status.OK, words)


def packages_finding(missing: Sequence[str], other: Sequence[str]) -> Finding:
    """Packages that servetop needs and that are not there, or of a version that it is not made for."""
    troubles = [*(f"{name} is missing" for name in missing), *other]
    if troubles:
        return Finding(
            "packages", Status.FIX, ", ".join(troubles), "install servetop again: pip install --upgrade servetop"
        )
    return Finding("packages", Status.OK, "all that servetop needs are installed")


def checkout_finding() -> Finding:
    """What it needs is written into an installed servetop."""
    return Finding("packages", Status.NOTE, "servetop runs from a checkout that was not installed", "pip install -e .")


def extras_finding(extras: Mapping[str, bool]) -> Finding:
    """Which optional parts are installed; none of them is needed."""
    there = ", ".join(name for name, installed in extras.items() if installed) or "none"
    absent = [name for name, installed in extras.items() if not installed]
    hint = f"; not installed: {', '.join(absent)} (pip install 'servetop[{absent[0]}]')" if absent else ""
    return Finding("extras", Status.OK, there + hint)


def engine_findings(here: Mapping[str, str], absent: Sequence[str]) -> list[Finding]:
    """A line for each engine that can be started here, with its command line; one for all that cannot."""
    found = [Finding(f"engine {name}", Status.OK, command) for name, command in here.items()]
    if absent:
        advice = "servetop engines says how to get them"
        found.append(Finding("engines", Status.NOTE, f"not installed here: {', '.join(absent)}", advice))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU as it is now; memory in bytes."""

    name: str
    used: int
    total: int
    holders: tuple[str, ...] = ()
    """Who holds memory of it, in words."""


def gpu_findings(devices: Sequence[Device], *, driver: str, trouble: str) -> list[Finding]:
    """The driver, and each device with its free memory; `trouble` is why devices that exist cannot be read."""
    if trouble:
        advice = "see what nvidia-smi says: the driver has to be loaded and to fit its library"
        return [Finding("gpu", Status.FIX, trouble, advice)]
    if not devices:
        advice = "the simulator needs none; engines elsewhere are watched by --url"
        return [Finding("gpu", Status.NOTE, "none that can be read", advice)]
    return [Finding("gpu driver", Status.OK, driver), *(_device(index, each) for index, each in enumerate(devices))]


def _device(index: int, device: Device) -> Finding:
    free = device.total - device.used
    words = f"{device.name}, {free / GIB:.1f} of {device.total / GIB:.1f} GiB free"
    if not device.total or free >= device.total / 2:
        return Finding(f"gpu {index}", Status.OK, words)
    by = f", the rest is held by {'; '.join(device.holders)}" if device.holders else ""
    advice = "stop what holds it, or give the engine a smaller share of the memory"
    return Finding(f"gpu {index}", Status.NOTE, words + by, advice)


def port_finding(port: int, purpose: str, *, holder: str | None) -> Finding:
    """Whether a default port is free; a run does not need it."""
    if holder is None:
        return Finding(f"port {port}", Status.OK, f"free ({purpose})")
    return Finding(f"port {port}", Status.NOTE, f"in use by {holder}", f"{purpose}: give another port")


def free_port_finding(port: int | None) -> Finding:
    """Whether the system gives a free port, which every started engine needs."""
    if port is None:
        advice = "close what holds them, or look at net.ipv4.ip_local_port_range"
        return Finding("free ports", Status.FIX, "the system gives none", advice)
    return Finding("free ports", Status.OK, "an engine gets one of its own")


def ephemeral_finding(low_high: tuple[int, int] | None) -> Finding:
    """Ports for the client's end of connections: to one server each connection takes one."""
    if low_high is None:
        return Finding("connections", Status.OK, "range of local ports not known")
    low, high = low_high
    count = high - low + 1
    words = f"{count:,} local ports ({low}-{high})"
    if count < STREAMS + SPARE_FILES:
        advice = f"for {STREAMS:,} streams: sysctl -w net.ipv4.ip_local_port_range='1024 65535'"
        return Finding("connections", Status.NOTE, words, advice)
    return Finding("connections", Status.OK, words)


def files_finding(hard_limit: int | None) -> Finding:
    """Open files: the sender raises its own limit as far as it may, so that the hard one counts."""
    if hard_limit is None:
        return Finding("open files", Status.OK, "no limit, or none that is known")
    words = f"at most {hard_limit:,} open files"
    if hard_limit >= STREAMS + SPARE_FILES:
        return Finding("open files", Status.OK, words)
    status = Status.NOTE if hard_limit >= FEWEST_FILES else Status.FIX
    return Finding(
        "open files", status, words, f"for {STREAMS:,} streams raise the hard limit (ulimit -Hn) to {2 * STREAMS}"
    )


def clock_finding(source: str | None, *, slack: float | None) -> Finding:
    """What the kernel's clock reads, and how late (seconds) it may wake a process up."""
    words = f"clock source {source or 'not known'}"
    words += "" if slack is None else f", timers to {slack * 1e6:.0f} µs"
    if source in SLOW_CLOCKS:
        return Finding("clock", Status.NOTE, words, "reading it is slow, times get rough: boot with clocksource=tsc")
    if slack is not None and slack >= MUCH_SLACK:
        return Finding(
            "clock", Status.NOTE, words, "requests go out late: start servetop where the timer slack is small"
        )
    return Finding("clock", Status.OK, words)


def processors_finding(count: int, load: float | None) -> Finding:
    """Processors that servetop may use, and how many are wanted on average (one minute)."""
    words = f"{count} processor{'s' * (count != 1)}" + ("" if load is None else f", load {load:.1f}")
    if count < 2:
        advice = "sender and engine take turns: on an engine of this machine latencies count both"
        return Finding("processors", Status.NOTE, words, advice)
    if load is not None and load > 0.75 * count:
        return Finding("processors", Status.NOTE, words, "others use this machine: what you measure is theirs as well")
    return Finding("processors", Status.OK, words)


def limits_finding(processors: float | None, memory: int | None) -> Finding:
    """What a container, or a control group, lets servetop and its engine have; None: no limit."""
    parts = [] if processors is None else [f"{processors:g} processors"]
    parts += [] if memory is None else [f"{memory / GIB:.1f} GiB of memory"]
    words = f"held to {' and '.join(parts)}" if parts else "none"
    if processors is not None and processors < 2:
        advice = "the sender is stopped when the share is used up: give the container two processors or more"
        return Finding("limits", Status.NOTE, words, advice)
    return Finding("limits", Status.OK, words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The place of recordings."""

    folder: str
    writable: bool
    free: float | None = None
    """Bytes."""
    file_system: str | None = None
    """As the mount table calls it: `ext4`, `nfs4`."""


def disk_finding(disk: Disk) -> Finding:
    """Space, and whether SQLite's write-ahead log works there (not over a network: sqlite.org/wal.html)."""
    free = "" if disk.free is None else f", {disk.free / GIB:.1f} GiB free"
    words = f"{disk.folder} ({disk.file_system or 'file system not known'}{free})"
    elsewhere = "set SERVETOP_RECORDINGS to a folder on a local disk"
    if not disk.writable:
        return Finding("recordings", Status.FIX, f"{words} cannot be written", elsewhere)
    if disk.free is not None and disk.free < LEAST_DISK:
        return Finding("recordings", Status.FIX, words, f"the disk is full: free some space, or {elsewhere}")
    if disk.file_system in NETWORK_FILE_SYSTEMS:
        advice = f"SQLite cannot share a growing file over a network: {elsewhere}"
        return Finding("recordings", Status.NOTE, words, advice)
    if disk.free is not None and disk.free < ENOUGH_DISK:
        return Finding("recordings", Status.NOTE, words, "a long run needs more: free some space")
    return Finding("recordings", Status.OK, words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Where the dashboard would be drawn."""

    is_terminal: bool
    columns: int = 80
    lines: int = 24
    encoding: str = "utf-8"
    colours: str = ""
    """`COLORTERM`, else `TERM`."""


def terminal_finding(terminal: Terminal) -> Finding:
    """Size, characters and colours."""
    if not terminal.is_terminal:
        return Finding("terminal", Status.NOTE, "none", "the dashboard needs one: run with --headless here")
    words = f"{terminal.columns}×{terminal.lines}, {terminal.encoding}, {terminal.colours or 'no TERM'}"
    if terminal.encoding.lower().replace("-", "") != "utf8":
        return Finding("terminal", Status.NOTE, words, "charts need Unicode: export LC_ALL=C.UTF-8")
    if terminal.columns < 80 or terminal.lines < 24:
        return Finding("terminal", Status.NOTE, words, "the dashboard is made for 80×24 and more: enlarge the window")
    if terminal.colours in ("", "dumb"):
        return Finding("terminal", Status.NOTE, words, "it says that it has no colours: export TERM=xterm-256color")
    return Finding("terminal", Status.OK, words)


def runtimes_finding(found: Sequence[str]) -> Finding:
    """Container runtimes: needed for engines that ship as images only."""
    return Finding("containers", Status.OK, ", ".join(found) or "no docker, no podman: engines are started as programs")
