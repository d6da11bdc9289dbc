"""What a manifest says about the client machine besides `host_facts`: processors, NUMA, container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_CONTAINER_FILES = (".dockerenv", "run/.containerenv")
_CONTAINER_GROUPS = ("docker", "kubepods", "containerd", "libpod", "lxc")


def host_details(root: Path = Path("/")) -> dict[str, Any]:
    """Return `cpu`, `numa_nodes`, `governor`, `usable_cpus` and `container`, each only where it can be read."""
    return dict(_details(root))


def _details(root: Path) -> Iterator[tuple[str, Any]]:
    lines = _text(root / "proc/cpuinfo").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    if model:
        yield "cpu", model
    nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
    if nodes:
        yield "numa_nodes", nodes
    governor = _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    if governor:
        yield "governor", governor
    with suppress(AttributeError, OSError):  # Linux only
        yield "usable_cpus", len(os.sched_getaffinity(0))
    groups = _text(root / "proc/1/cgroup")
    in_group = any(name in groups for name in _CONTAINER_GROUPS)
    yield "container", in_group or any((root / name).exists() for name in _CONTAINER_FILES)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
