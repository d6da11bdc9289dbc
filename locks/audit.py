"""Holds the locked packages against the published advisories: 1 when there are some, 0 when there are none or unknown.

`python locks/audit.py LOCK…`. Asks the registry, then OSV; says for how many packages neither had an answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SERVICES = ("pypi", "osv")
LIMIT = 120.0
"""Seconds for one service."""
PIP_AUDIT = (
    sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "--progress-spinner", "off",
    "--timeout", "15", "--format", "json",
)  # fmt: skip


def ask(lock: str, service: str) -> list[dict[str, Any]]:
    """Each package as pip-audit tells of it; none when the service cannot be reached, or in time."""
    argv = [*PIP_AUDIT, "--vulnerability-service", service, "--requirement", lock]
    try:
        told = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False).stdout
        found: list[dict[str, Any]] = json.loads(told)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return []
    return found


def verdict(lock: str, found: Sequence[dict[str, Any]]) -> tuple[bool, list[str]]:
    """Whether there are advisories, and the lines that say so. A package that was skipped is not known to be sound."""
    looked_up = [each for each in found if "vulns" in each]
    lines = [
        f"{each['name']} {each['version']}: {vulnerability['id']}"
        f" (mended in {', '.join(vulnerability['fix_versions']) or 'no release yet'})"
        for each in looked_up
        for vulnerability in each["vulns"]
    ]
    if lines:
        return True, [*lines, f"{lock}: {len(lines)} advisories: make lock takes the newest versions"]
    if not looked_up:
        return False, [f"{lock}: could not be audited: no source of advisories answers here"]
    left_out = f", {len(found) - len(looked_up)} could not be looked up" if len(looked_up) < len(found) else ""
    return False, [f"{lock}: no advisories for {len(looked_up)} packages{left_out}"]


def audit(lock: str) -> tuple[bool, list[str]]:
    """By the first service that knows any of the packages."""
    for service in SERVICES:
        found = ask(lock, service)
        if any("vulns" in each for each in found):
            return verdict(lock, found)
    return verdict(lock, [])


def main(locks: Sequence[str]) -> int:
    """Audit each lock file."""
    results = [audit(lock) for lock in locks if Path(lock).is_file()]
    sys.stdout.write("".join(f"{line}\n" for _, lines in results for line in lines))
    return int(any(bad for bad, _ in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
