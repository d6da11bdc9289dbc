"""`servetop doctor`: checks whether this machine can run a load, and what to change."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError

from servetop.cli.doctor import doctor_checks as checks
from servetop.cli.doctor import doctor_facts as facts
from servetop.cli.doctor.doctor_checks import Finding, Status
from servetop.core.errors import ExitCode
from servetop.run import console

DoctorCheck = Callable[[], Iterable[Finding]]


def run_doctor(*, as_json: bool) -> int:
    """Print the findings; the exit code is RUN_FAILED if something must be fixed before servetop can run."""
    findings = examine(CHECKS)
    worst = checks.verdict(findings)
    if as_json:
        report = {"verdict": worst, "checks": [finding._asdict() for finding in findings]}
        console.out_json(report)
    else:
        console.out(*report_lines(findings, shutil.get_terminal_size().columns if console.is_terminal() else None))
    return int(ExitCode.RUN_FAILED if worst is Status.FIX else ExitCode.OK)


def examine(named: Sequence[tuple[str, DoctorCheck]]) -> list[Finding]:
    """All findings, in order. A check that raises becomes a finding, so that there is a report on any machine."""
    found: list[Finding] = []
    for name, check in named:
        try:
            found += check()
        except Exception as error:  # an unknown machine may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            found.append(Finding(name, Status.NOTE, f"check failed ({reason})"))
    return found


def report_lines(findings: Sequence[Finding], columns: int | None = None) -> list[str]:
    """A line for each finding, its advice below it, and a summary in the last line; wrapped to fit into `columns`."""
    width = max((len(finding.name) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines += _wrapped(f"{finding.status:<4}  {finding.name:<{width}}  ", finding.found, columns)
        lines += _wrapped(f"{'':<4}  {'':<{width}}  → ", finding.advice, columns) if finding.advice else []
    count = sum(finding.status is Status.FIX for finding in findings)
    summaries = {0: "ready to run: try servetop", 1: "1 problem must be fixed"}
    return [*lines, "", summaries.get(count, f"{count} problems must be fixed")]


def _wrapped(head: str, text: str, columns: int | None) -> list[str]:
    """Return a text behind a head, its further lines below its beginning; paths and commands stay whole."""
    if columns is None:
        return [head + text]
    room = max(columns - len(head), 20)
    pieces = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [head + pieces[0], *(" " * len(head) + piece for piece in pieces[1:])]


def _python() -> list[Finding]:
    from servetop.run.manifest.versions import servetop_version

    return [checks.python_finding((sys.version_info[0], sys.version_info[1], sys.version_info[2]), servetop_version())]


def _packages() -> list[Finding]:
    try:
        needed = facts.requirements()
    except PackageNotFoundError:
        return [checks.checkout_finding()]
    missing, other = facts.unmet(needed)
    return [checks.packages_finding(missing, other), checks.extras_finding(facts.extras(needed))]


def _engines() -> list[Finding]:
    from servetop.engines.inventory import startable_engines

    engines = startable_engines()
    here = {each.name: each.command for each in engines if not each.trouble}
    return checks.engine_findings(here, [each.name for each in engines if each.trouble and each.name != "openai"])


def _gpus() -> list[Finding]:
    from servetop.engines.inventory import gpu_inventory

    found = gpu_inventory()
    return checks.gpu_findings(found.devices, driver=found.driver, trouble=found.trouble, unreadable=found.unreadable)


def _ports() -> list[Finding]:
    from servetop.engines.process.ports import free_port, port_holder, port_is_free

    try:
        free: int | None = free_port()
    except OSError:
        free = None
    defaults = ((8000, "servetop serve"), (8765, "servetop --web"))
    holders = [None if port_is_free(port) else port_holder(port) for port, _ in defaults]
    found = [
        checks.port_finding(port, purpose, holder=holder)
        for (port, purpose), holder in zip(defaults, holders, strict=True)
    ]
    return [checks.free_port_finding(free), *found]


def _clock() -> list[Finding]:
    source, slack = facts.clock_source()
    return [checks.clock_finding(source, slack=slack)]


def _priority() -> list[Finding]:
    from servetop.core.system.scheduling import may_enter_real_time

    return [checks.priority_finding(linux=sys.platform == "linux", permitted=may_enter_real_time())]


def _recordings() -> list[Finding]:
    from servetop.recordings.library.paths import recordings_folder

    return [checks.disk_finding(facts.recordings_disk(recordings_folder()))]


CHECKS: Sequence[tuple[str, DoctorCheck]] = (
    ("python", _python),
    ("packages", _packages),
    ("engines", _engines),
    ("containers", lambda: [checks.runtimes_finding(facts.runtimes())]),
    ("gpu", _gpus),
    ("ports", _ports),
    ("connections", lambda: [checks.ephemeral_finding(facts.local_ports())]),
    ("open files", lambda: [checks.files_finding(facts.hard_file_limit())]),
    ("clock", _clock),
    ("processors", lambda: [checks.processors_finding(*facts.processors())]),
    ("priority", _priority),
    ("limits", lambda: [checks.limits_finding(*facts.group_limits())]),
    ("recordings", _recordings),
    ("terminal", lambda: [checks.terminal_finding(facts.terminal())]),
)
"""In the order of the report."""
