"""The wheel: bounded in size, the same bytes each time, and complete where no checkout is near."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.clean_environment import MACHINE
from tests.harness import RAN, Servetop
from tests.house.source_tree import TOP

pytestmark = pytest.mark.integration

MOST_BYTES = 3_600_000
"""What takes them, and why they are not fewer: docs/decisions/031-size-of-the-wheel.md."""
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def build(folder: Path) -> Path:
    """Build the wheel of the checkout, with the time of 2020-01-01 in it."""
    environment = {**MACHINE, "SOURCE_DATE_EPOCH": "1577836800"}
    subprocess.run([*PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(TOP)], check=True, env=environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def servetop(wheel: Path, tmp_path: Path) -> Servetop:
    """The installed wheel, found before the checkout."""
    site = tmp_path / "site"
    subprocess.run([*PIP, "install", "--no-deps", "--target", str(site), str(wheel)], check=True, env=MACHINE)
    return Servetop(tmp_path, {"PYTHONPATH": str(site), "PATH": os.environ["PATH"]})


def test_it_stays_small(wheel: Path) -> None:
    with ZipFile(wheel) as files:
        largest = Counter({each.filename: each.compress_size for each in files.infolist()}).most_common(8)
    assert wheel.stat().st_size <= MOST_BYTES, largest


def test_each_licence_of_data_is_packed_once(wheel: Path) -> None:
    with ZipFile(wheel) as files:
        packed = Counter(Path(name).name for name in files.namelist() if "/LICENSE." in name)
    named = {each.name for each in TOP.glob("*/servetop/**/data/LICENSE.*")}
    assert packed == dict.fromkeys(named, 1)


def test_a_second_build_has_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_it_has_all_of_the_packages_and_nothing_of_the_tests(wheel: Path) -> None:
    with ZipFile(wheel) as files:
        names = files.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name and ".data" not in name} == {"servetop"}
    for name in (
        "api/plug_ins.py",
        "recordings/shipped/h200.servetop.xz",
        "reports/page/data/page.css",
        "core/py.typed",
    ):
        assert f"servetop/{name}" in names


def test_it_runs_without_the_checkout(servetop: Servetop, tmp_path: Path) -> None:
    where = "import servetop.core.errors, servetop.cli.main; print(servetop.core.errors.__file__)"
    environment = {**MACHINE, "PYTHONPATH": str(tmp_path / "site")}
    found = subprocess.run(
        [sys.executable, "-c", where], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    )
    assert found.stdout.startswith(str(tmp_path / "site"))
    for sample, requests in (("sample", 803), ("sample:h200", None)):
        done = servetop("summary", sample, "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["completed"] == (requests or json.loads(done.out)["num_prompts"])
    assert servetop("report", "sample", "-o", str(tmp_path / "page.html")).code == 0
    recording = tmp_path / "run.servetop"
    load = ("--request-rate", "20", "--num-prompts", "10", "--input-len", "16", "--output-len", "4")
    done = servetop("--engine", "sim", *load, "--record", str(recording), "--json")
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 10
    assert servetop("verify", str(recording)).code == 0
