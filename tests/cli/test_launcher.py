"""An invalid launcher is an error before anything starts."""

from __future__ import annotations

import pytest

from servetop.cli.configuration.configure import check_launcher
from servetop.cli.main import main
from servetop.core.config import EngineConfig
from servetop.core.errors import ExitCode, UsageError
from tests.harness import Servetop


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (EngineConfig(name="vllm", image="mine:1"), "--image needs a container: add --launcher"),
        (EngineConfig(name="vllm", launcher="docker", url="http://gpu7:8000"), "leave out --launcher and --image"),
        (EngineConfig(name="sim", launcher="podman"), "the simulator does not run in a container"),
    ],
)
def test_an_invalid_combination_is_an_error_of_one_line(config: EngineConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_launcher(config)


@pytest.mark.parametrize("launcher", ["", "docker", "podman"])
def test_an_engine_is_started_as_a_program_or_by_one_of_two_runtimes(launcher: str) -> None:
    check_launcher(EngineConfig(name="vllm", launcher=launcher))


def test_another_launcher_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--engine", "vllm", "--launcher", "lxc", "--headless"]) == ExitCode.USAGE
    assert "invalid --launcher lxc: use docker or podman" in capsys.readouterr().err


def test_the_command_reports_an_image_without_a_launcher(servetop: Servetop) -> None:
    done = servetop("--engine", "vllm", "--image", "mine:1", "--headless")
    assert (done.code, done.complaint) == (
        2, "--image needs a container: add --launcher docker or --launcher podman",
    )  # fmt: skip
