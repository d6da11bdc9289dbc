"""`make demo`: its installation shows steps and failures, and its load rises into an overload and falls again."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from servetop.simulator.predict.predict import PredictSpec, predict
from tests.cli.test_config_file import config_of

MAKEFILE = Path(__file__).parents[2] / "Makefile"
SCRIPT = Path(__file__).parents[2] / "locks" / "pip_install.sh"
PIP_OUTPUT = """\
Obtaining file:///servetop
  Installing build dependencies: started
  Installing build dependencies: finished with status 'done'
Collecting numpy>=1.26 (from servetop==0.1.0)
  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)
Building wheels for collected packages: servetop
  Building editable for servetop (pyproject.toml): started
Installing collected packages: numpy, servetop
Successfully installed numpy-2.4.6 servetop-0.1.0
"""


def installed(environment: Path, *, exit_code: int) -> subprocess.CompletedProcess[str]:
    """Install with a pip that prints PIP_OUTPUT, and an error on stderr if it fails."""
    pip = environment / "bin" / "pip"
    pip.parent.mkdir(parents=True, exist_ok=True)
    failure = f"echo 'ERROR: no such package' >&2; exit {exit_code}" if exit_code else ""
    pip.write_text(f"#!/bin/sh\ncat <<'END'\n{PIP_OUTPUT}END\n{failure}\n")
    pip.chmod(0o755)
    return subprocess.run(["bash", str(SCRIPT), str(environment), "--editable", "."], capture_output=True, text=True)


def test_each_step_of_pip_is_one_line(tmp_path: Path) -> None:
    done = installed(tmp_path / "venv", exit_code=0)
    assert done.returncode == 0, done.stderr
    lines = [re.fullmatch(r"servetop: +\d+ s  (.+)", line) for line in done.stdout.splitlines()]
    steps = dict.fromkeys(line and line[1] for line in lines)  # on a slow machine a step is repeated
    assert [step for step in steps if step != "waiting for pip"] == [
        "installing the build tools",
        "downloading numpy-2.4.6 (16.9 MB)",
        "building servetop",
        "installing 2 packages",
        f"installed in {tmp_path / 'venv'}",
    ]
    assert not (tmp_path / "venv" / ".installing").exists()


def test_a_failure_of_pip_is_the_failure_of_the_installation(tmp_path: Path) -> None:
    done = installed(tmp_path / "venv", exit_code=1)
    assert done.returncode == 1
    assert done.stderr == "ERROR: no such package\n"
    assert (tmp_path / "venv" / ".installing").exists(), "the next installation starts from nothing"


def test_the_demo_rises_into_an_overload_and_recovers_within_two_minutes() -> None:
    (line,) = re.findall(
        r"^\t\$\(BIN\)/servetop (--label demo .+)$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE
    )
    config = config_of(*shlex.split(line))
    first, *_, last = config.stages
    assert sum(stage.duration or 0.0 for stage in config.stages) <= 120
    blocks = config.engine.extra_args[config.engine.extra_args.index("--kv-blocks") + 1]
    spec = PredictSpec(workload=config.workload, stages=config.stages, settings={"kv_blocks": blocks})
    preemptions = [cell.require_result().preemptions for cell in predict([spec]).cells]
    assert preemptions[0] == preemptions[-1] == 0, "each stage alone, in virtual time"
    assert min(preemptions[1:-1]) > 0
    assert first.request_rate == last.request_rate
