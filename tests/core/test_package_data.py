"""The data that comes with servetop is found wherever servetop is imported from."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from servetop.core.system.package_data import package_path

ROOT = Path(__file__).parents[2]
PORTIONS = ("cli", "core", "engines", "loadgen", "recordings", "tui")
PREDICT = (
    "predict",
    "--model",
    "llama-2-7b",
    "--gpu",
    "a100-40",
    "--num-prompts",
    "20",
    "--request-rate",
    "8",
    "--json",
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of servetop's packages in one zip archive."""
    folder = tmp_path_factory.mktemp("zip")
    for portion in PORTIONS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / portion / "servetop", folder / "app" / "servetop", dirs_exist_ok=True, ignore=ignored)
    zipapp.create_archive(folder / "app", folder / "servetop.pyz", main="servetop.cli.main:main")
    return folder / "servetop.pyz"


def python(archive: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=60, check=False, cwd=archive.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_simulator_in_an_archive_finds_its_profiles(archive: Path) -> None:
    (cell,) = json.loads(python(archive, str(archive), *PREDICT))["cells"]
    assert cell["output_throughput"] > 0


def test_what_was_unpacked_is_gone_when_the_process_ends(archive: Path, tmp_path: Path) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(archive)!r})
from servetop.core.system.package_data import package_path
from servetop.workload.datasets.files import shipped
from servetop.run.sweep.presets import preset_names
assert preset_names()
watchdog = package_path("servetop.engines", "process/watchdog.py")
assert ".pyz" not in str(watchdog) and watchdog.is_file() and shipped("mtbench.jsonl.gz").is_file()
print(watchdog)
"""
    assert not Path(python(archive, "-c", program).strip()).exists()


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("servetop.engines", "adapters/servers/ray_app.py"),
        ("servetop.simulator", "profiles"),
        ("servetop.cli", "web_page"),
    ],
)
def test_a_checkouts_files_are_taken_where_they_are(package: str, name: str) -> None:
    path = package_path(package, name)
    assert path.exists()
    assert ROOT in path.parents
