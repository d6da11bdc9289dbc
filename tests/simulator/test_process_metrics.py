"""The simulator's page has the metrics of its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from servetop.simulator.server.process_metrics import process_metrics


def values(proc: Path) -> dict[str, float]:
    lines = [line for series in process_metrics(proc) for line in series.lines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.partition(" ") for line in lines)}


def test_memory_and_open_files_are_those_of_proc(tmp_path: Path) -> None:
    (tmp_path / "statm").write_text("5000 300 200 1 0 900 0\n")
    (tmp_path / "fd").mkdir()
    for number in range(3):
        (tmp_path / "fd" / str(number)).touch()
    found = values(tmp_path)
    assert found["process_resident_memory_bytes"] == 300 * os.sysconf("SC_PAGE_SIZE")
    assert found["process_open_fds"] == 3
    assert found["process_cpu_seconds_total"] > 0


def test_a_system_without_proc_has_the_processor_time_and_the_start_alone(tmp_path: Path) -> None:
    assert list(values(tmp_path / "missing")) == ["process_cpu_seconds_total", "process_start_time_seconds"]


def test_a_later_process_has_a_later_start(tmp_path: Path) -> None:
    """By this a watch knows an idle server that was restarted at once."""
    program = "from servetop.simulator.server.process_metrics import process_metrics\n" + (
        "for each in process_metrics(): print(*each.lines(), sep='\\n')"
    )
    page = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    later = float(page.partition("\nprocess_start_time_seconds ")[2].splitlines()[0])
    own = values(tmp_path)["process_start_time_seconds"]
    assert own == pytest.approx(psutil.Process().create_time())
    assert later > own
