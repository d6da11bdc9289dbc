"""Processors and container of the client machine."""

from pathlib import Path

import pytest

from servetop.run.manifest.host_details import host_details


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_what_a_machine_reports_is_read(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        {
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654\nprocessor\t: 1\nmodel name\t: other\n",
            "sys/devices/system/node/node0/x": "",
            "sys/devices/system/node/node1/x": "",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            "proc/1/cgroup": "0::/init.scope\n",
        },
    )
    found = host_details(root)
    assert found.pop("usable_cpus", 1) >= 1
    assert found == {"cpu": "AMD EPYC 9654", "numa_nodes": 2, "governor": "performance", "container": False}


@pytest.mark.parametrize("file", [".dockerenv", "run/.containerenv", "proc/1/cgroup"])
def test_a_container_is_recognised_by_its_files(tmp_path: Path, file: str) -> None:
    found = host_details(written(tmp_path, {file: "0::/kubepods/besteffort\n"}))
    assert found["container"] is True
    assert "cpu" not in found
