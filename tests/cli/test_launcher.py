"""A launcher that cannot be meant is refused before anything starts."""

from __future__ import annotations

import pytest

from servetop.cli.configuration.configure import check_launcher
from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from tests.harness import Servetop


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (EngineConfig(name="vllm", launcher="lxc"), "--launcher lxc: give docker or podman"),
        (EngineConfig(name="vllm", image="mine:1"), "--image is that of a container: give --launcher"),
        (EngineConfig(name="vllm", launcher="docker", url="http://gpu7:8000"), "leave out --launcher and --image"),
        (EngineConfig(name="sim", launcher="podman"), "the simulator needs no container"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(config: EngineConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_launcher(config)


@pytest.mark.parametrize("launcher", ["", "docker", "podman"])
def test_an_engine_is_started_as_a_program_or_by_one_of_two_runtimes(launcher: str) -> None:
    check_launcher(EngineConfig(name="vllm", launcher=launcher))


def test_the_command_line_says_it_too(servetop: Servetop) -> None:
    done = servetop("--engine", "vllm", "--image", "mine:1", "--headless")
    assert (done.code, done.complaint) == (
        2, "--image is that of a container: give --launcher docker or --launcher podman too",
    )  # fmt: skip
