"""The wheel with its own list of dependencies, in the lowest versions that it claims, and on each other Python here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.clean_environment import MACHINE
from tests.house.source_tree import TOP
from tests.integration.test_wheel import build

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SUPPORTED = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
LOWEST, LOCKED = "locks/lowest.txt", "locks/ci.txt"


def versions(lock: str) -> list[str]:
    """The packages of a lock, as `name==version`."""
    return re.findall(r"^([\w.-]+==[^\\\n]+?) *\\$", (TOP / lock).read_text(encoding="utf-8"), re.MULTILINE)


def installed(version: str) -> str | None:
    """An interpreter of a version that runs, on the path or among those of pyenv; None without one."""
    beside = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for each in (shutil.which(f"python{version}"), *map(str, reversed(beside))):
        if each and subprocess.run([each, "-c", "import venv"], check=False, env=MACHINE).returncode == 0:
            return each
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize(("version", "lock"), [(SUPPORTED[0], LOWEST), *((each, LOCKED) for each in SUPPORTED[1:])])
def test_it_installs_what_it_needs_and_runs(version: str, lock: str, wheel: Path, tmp_path: Path) -> None:
    python = installed(version)
    if python is None or subprocess.run([python, "-m", "venv", tmp_path / "env"], check=False, env=MACHINE).returncode:
        pytest.skip(f"needs Python {version} with venv")
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(versions(lock)), encoding="utf-8")
    own = tmp_path / "env" / "bin"
    pip = [str(own / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(constraints), str(wheel)], check=True, env=MACHINE)
    listed = subprocess.run([*pip[:3], "freeze", "--local"], capture_output=True, text=True, check=True, env=MACHINE)
    assert {each for each in versions(lock) if each.startswith("httpx==")} <= set(listed.stdout.splitlines())
    environment = {**MACHINE, "SERVETOP_RECORDINGS": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}

    def run(*words: str) -> str:
        done = subprocess.run(
            [own / "servetop", *words], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )
        assert done.returncode in (0, 99), done.stderr  # 99: a busy machine made the client late
        return done.stdout

    assert json.loads(run("summary", "sample", "--json"))["completed"] == 803
    load = ("--request-rate", "20", "--num-prompts", "10", "--input-len", "16", "--output-len", "4", "--json")
    assert json.loads(run("--engine", "sim", *load, "--record", "run.servetop"))["completed"] == 10
    run("verify", "run.servetop")
    run("report", "run.servetop", "-o", "page.html")
    assert (tmp_path / "page.html").stat().st_size > 50_000
