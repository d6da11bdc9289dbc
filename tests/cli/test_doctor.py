"""`servetop doctor` always reports, and its exit code is 1 if something must be fixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.cli.doctor import doctor_checks as checks
from servetop.cli.doctor import doctor_facts as facts
from servetop.cli.doctor.doctor import CHECKS, examine, report_lines
from servetop.cli.doctor.doctor_checks import Disk, Finding, Status, Terminal, verdict
from servetop.engines.inventory import GpuMemory
from tests.harness import Servetop

GIB = 1 << 30


@pytest.mark.parametrize(
    ("finding", "status", "words"),
    [
        (checks.python_finding((3, 11, 7), "0.1.0"), "ok", "3.11.7, servetop 0.1.0"),
        (checks.python_finding((3, 10, 1), "0.1.0"), "fix", "3.10.1"),
        (checks.packages_finding([], []), "ok", "all"),
        (checks.packages_finding(["uvloop"], ["numpy 1.20 (needs 1.26)"]), "fix", "uvloop is missing, numpy 1.20"),
        (checks.extras_finding({"web": True, "vllm": False}), "ok", "web; not installed: vllm (pip install"),
        (checks.engine_findings({"sim": "python -m x"}, [])[0], "ok", "python -m x"),
        (checks.engine_findings({}, ["tgi", "vllm"])[0], "note", "not installed here: tgi, vllm"),
        (checks.port_finding(8000, "servetop serve", holder=None), "ok", "free"),
        (checks.port_finding(8000, "servetop serve", holder="process 7 (nc)"), "note", "in use by process 7 (nc)"),
        (checks.free_port_finding(None), "fix", "none"),
        (checks.ephemeral_finding((32768, 60999)), "ok", "28,232 local ports"),
        (checks.ephemeral_finding((32768, 33767)), "note", "1,000 local ports"),
        (checks.ephemeral_finding(None), "ok", "unknown"),
        (checks.files_finding(1_048_576), "ok", "1,048,576"),
        (checks.files_finding(4096), "note", "4,096"),
        (checks.files_finding(256), "fix", "256"),
        (checks.files_finding(None), "ok", "no known limit"),
        (checks.clock_finding("tsc", slack=50e-6), "ok", "clock source tsc, timers to 50 µs"),
        (checks.clock_finding("hpet", slack=None), "note", "hpet"),
        (checks.clock_finding(None, slack=0.04), "note", "unknown, timers to 40000 µs"),
        (checks.processors_finding(16, 0.4), "ok", "16 processors, load 0.4"),
        (checks.processors_finding(1, None), "note", "1 processor"),
        (checks.processors_finding(4, 3.9), "note", "load 3.9"),
        (checks.priority_finding(linux=True, permitted=True), "ok", "senders run in the real-time class"),
        (checks.priority_finding(linux=True, permitted=False), "note", "senders may not use the real-time class"),
        (checks.priority_finding(linux=False, permitted=False), "ok", "no real-time class"),
        (checks.limits_finding(None, None), "ok", "none"),
        (checks.limits_finding(0.5, 2 * GIB), "note", "limited to 0.5 processors and 2.0 GiB of memory"),
        (checks.limits_finding(4.0, None), "ok", "limited to 4 processors"),
        (checks.terminal_finding(Terminal(is_terminal=False)), "note", "none"),
        (checks.terminal_finding(Terminal(is_terminal=True, columns=120, lines=40, colours="x")), "ok", "120×40"),
        (checks.terminal_finding(Terminal(is_terminal=True, columns=60, colours="xterm")), "note", "60×24"),
        (checks.terminal_finding(Terminal(is_terminal=True, encoding="ANSI_X3.4-1968", colours="x")), "note", "ANSI"),
        (checks.terminal_finding(Terminal(is_terminal=True, colours="dumb")), "note", "dumb"),
        (checks.runtimes_finding([]), "ok", "no docker, no podman"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_each_fact_has_a_status_and_advice_if_it_is_not_ok(finding: Finding, status: str, words: str) -> None:
    assert (finding.status, words in finding.found) == (status, True), finding
    assert (finding.status == "ok") == (not finding.advice)


@pytest.mark.parametrize(
    ("disk", "status"),
    [
        (Disk(folder="/r", writable=True, free=50e9, file_system="ext4"), "ok"),
        (Disk(folder="/r", writable=True, free=50e9, file_system=None), "ok"),
        (Disk(folder="/r", writable=True, free=50e9, file_system="nfs4"), "note"),
        (Disk(folder="/r", writable=True, free=1e9, file_system="xfs"), "note"),
        (Disk(folder="/r", writable=True, free=1e6, file_system="nfs4"), "fix"),
        (Disk(folder="/r", writable=False, free=50e9, file_system=None), "fix"),
    ],
)
def test_the_recordings_folder_needs_a_local_disk_with_space(disk: Disk, status: str) -> None:
    assert checks.disk_finding(disk).status == status


def test_gpus_are_listed_with_the_processes_that_use_their_memory() -> None:
    free = GpuMemory(index=0, name="H200", used=GIB, total=140 * GIB)
    full = GpuMemory(
        index=1, name="H200", used=130 * GIB, total=140 * GIB, holders=("process 7 with 129.0 GiB (vllm serve)",)
    )
    driver, first, second = checks.gpu_findings([free, full], driver="NVIDIA 580.82, CUDA up to 13.0", trouble="")
    assert (driver.status, first.status, second.status) == ("ok", "ok", "note")
    assert first.found == "H200, 139.0 of 140.0 GiB free"
    assert second.found.endswith("10.0 of 140.0 GiB free, the rest is used by process 7 with 129.0 GiB (vllm serve)")


def test_a_gpu_that_cannot_be_read_is_named_among_the_others() -> None:
    works = GpuMemory(index=1, name="H200", used=GIB, total=140 * GIB)
    found = checks.gpu_findings([works], driver="NVIDIA 580.82", trouble="", unreadable={0: "GPU is lost"})
    assert [(each.name, each.status) for each in found] == [("gpu driver", "ok"), ("gpu 0", "note"), ("gpu 1", "ok")]
    assert found[1].found == "cannot be read: GPU is lost"
    shared = GpuMemory(index=0, name="GB10", used=None, total=None)
    assert checks.gpu_findings([shared], driver="", trouble="")[0].found == "GB10, memory not reported"
    only_lost = checks.gpu_findings([], driver="", trouble="", unreadable={0: "GPU is lost"})
    assert [each.found for each in only_lost] == ["cannot be read: GPU is lost"]


def test_a_missing_gpu_is_a_note_and_a_broken_driver_must_be_fixed() -> None:
    assert [each.status for each in checks.gpu_findings([], driver="", trouble="")] == ["note"]
    assert [each.status for each in checks.gpu_findings([], driver="", trouble="Driver Not Loaded")] == ["fix"]


def test_the_verdict_is_the_worst_finding() -> None:
    findings = [Finding("a", Status.OK, ""), Finding("b", Status.FIX, ""), Finding("c", Status.NOTE, "")]
    assert [verdict(findings), verdict(findings[::2]), verdict([])] == ["fix", "note", "ok"]


def test_requirements_are_compared_with_the_installed_packages() -> None:
    needed = [
        "numpy>=1.26", "rich>=9999,<10000", "textual>=0.1,<0.2", "no-such-package>=1",
        "uvloop>=0.21; sys_platform != 'win32'",
        'no-such-extra>=1; extra == "web"', 'pytest>=8; extra == "tests"', 'no-such-tool; extra == "dev"',
    ]  # fmt: skip
    missing, other = facts.unmet(needed)
    assert missing == ["no-such-package"]
    assert [each.split()[0] for each in other] == ["rich", "textual"]
    assert facts.extras(needed) == {"tests": True, "web": False}


def test_limits_of_both_versions_of_control_groups_are_read(tmp_path: Path) -> None:
    assert facts.group_limits(tmp_path) == (None, None)
    for name, text in (("cpu/cpu.cfs_quota_us", "-1"), ("cpu/cpu.cfs_period_us", "100000")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert facts.group_limits(tmp_path) == (None, None)
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("150000\n")
    assert facts.group_limits(tmp_path) == (1.5, None)
    (tmp_path / "cpu.max").write_text("400000 100000\n")
    (tmp_path / "memory.max").write_text(f"{8 * GIB}\n")
    assert facts.group_limits(tmp_path) == (4.0, 8 * GIB)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert facts.group_limits(tmp_path) == (None, None)


def test_a_path_is_on_the_nearest_mounted_file_system() -> None:
    mounts = {"/": "ext4", "/home": "nfs4", "/home/me/fast": "xfs"}
    assert facts.file_system_of(Path("/home/me/fast/r"), mounts) == "xfs"
    assert facts.file_system_of(Path("/home/you"), mounts) == "nfs4"
    assert facts.file_system_of(Path("/homestead"), mounts) == "ext4"
    assert facts.file_system_of(Path("/x"), {}) is None


def test_a_folder_that_does_not_exist_is_checked_by_its_parent(tmp_path: Path) -> None:
    disk = facts.recordings_disk(tmp_path / "not" / "yet")
    assert disk.writable
    assert disk.free
    (tmp_path / "file").touch()
    assert not facts.recordings_disk(tmp_path / "file").writable


errors: st.SearchStrategy[type[Exception]] = st.sampled_from(
    [OSError, ValueError, KeyError, ImportError, RuntimeError, ZeroDivisionError, StopIteration, AttributeError]
)


@given(st.lists(st.tuples(errors, st.text(max_size=30)), max_size=5))
def test_a_report_exists_whatever_a_check_raises(raised: list[tuple[type[Exception], str]]) -> None:
    def failing(kind: type[Exception], text: str) -> Callable[[], list[Finding]]:
        def check() -> list[Finding]:
            raise kind(text)

        return check

    findings = examine([("broken", failing(kind, text)) for kind, text in raised])
    assert [(each.name, each.status) for each in findings] == [("broken", Status.NOTE)] * len(raised)
    assert "\n" not in "".join(each.found for each in findings)
    assert report_lines(findings)


def test_a_report_in_a_narrow_terminal_is_wrapped_between_words() -> None:
    found = [Finding("gpu", Status.NOTE, "no readable GPU", "the simulator needs none; use --url for another machine")]
    assert report_lines(found, 40)[:3] == [
        "note  gpu  no readable GPU",
        "           → the simulator needs none;",
        "             use --url for another",
    ]
    assert len(report_lines(found)) == 4


@given(
    st.none() | st.integers(-1, 1 << 40), st.none() | st.tuples(st.integers(), st.integers()),
    st.none() | st.text(), st.none() | st.floats(allow_nan=False), st.floats(allow_nan=False), st.integers(0, 512),
    st.text(), st.booleans(),
)  # fmt: skip
def test_every_fact_has_a_finding(
    number: int | None,
    pair: tuple[int, int] | None,
    text: str | None,
    real: float | None,
    free: float,
    count: int,
    words: str,
    yes: bool,
) -> None:
    gpu = GpuMemory(index=0, name=words, used=count, total=count)
    findings = [
        checks.files_finding(number), checks.ephemeral_finding(pair), checks.clock_finding(text, slack=real),
        checks.processors_finding(count, real), checks.limits_finding(real, number),
        checks.disk_finding(Disk(folder=words, writable=yes, free=free, file_system=text)),
        checks.terminal_finding(Terminal(is_terminal=yes, columns=count, lines=count, encoding=words, colours=words)),
        *checks.engine_findings({words: words}, [words]),
        *checks.gpu_findings([gpu], driver=words, trouble=text or ""),
    ]  # fmt: skip
    assert all(isinstance(each.status, Status) for each in findings)
    assert verdict(findings) in Status


def test_no_check_fails_on_this_machine() -> None:
    findings = examine(CHECKS)
    assert {name.split()[0] for name, _ in CHECKS} - {"ports"} <= {each.name.split()[0] for each in findings} | {
        "engines"
    }
    assert not [each for each in findings if "check failed (" in each.found]


def test_the_json_of_the_command_has_the_same_findings(servetop: Servetop) -> None:
    done, data = servetop("doctor"), servetop("doctor", "--json")
    report = json.loads(data.out)
    assert done.code == data.code == (1 if report["verdict"] == "fix" else 0)
    assert {"name", "status", "found", "advice"} == set(report["checks"][0])
    lines = [line for line in done.out.splitlines() if line[:4].strip() in ("ok", "note", "fix")]
    assert len(lines) == len(report["checks"])
    assert all(each["name"] in line for line, each in zip(lines, report["checks"], strict=True))


def test_a_recordings_folder_that_cannot_be_written_must_be_fixed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = Servetop(tmp_path / "file")("doctor")
    assert done.code == 1
    assert "cannot be written" in done.out
    assert "→ set SERVETOP_RECORDINGS to a folder on a local disk" in done.out
    assert "1 problem must be fixed" in done.out
