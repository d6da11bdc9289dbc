"""What a repetition would be on this machine."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.run.manifest.run_here import environment_version, run_here, with_recorded_endpoint, with_version
from tests.odd_server import odd_server

FACTS = EngineFacts(name="sim", title="simulator", version="vllm-0.2.1", kv_blocks_total=500)
RUN = RunHeader(config=RunConfig(), anchor=ClockAnchor(origin_ns=0, wall_epoch_s=1.7e9), engine=FACTS)


def test_the_simulator_would_start_with_the_options_and_variables_of_this_machine() -> None:
    config = RunConfig(engine=EngineConfig(extra_args=("--kv-blocks", "400")))
    here = run_here(RUN, config, {"OMP_NUM_THREADS": "3", "VLLM_API_KEY": "sk-planted12345", "HOME": "/root"})
    assert here.trouble == ()
    engine = here.header.manifest["engine"]
    assert engine["argv"][-2:] == ["--kv-blocks", "400"]
    assert "{port}" in engine["argv"]
    assert engine["environment"] == {"OMP_NUM_THREADS": "3", "VLLM_API_KEY": "[redacted]"}
    assert here.header.engine == FACTS
    assert here.header.manifest["host"]["usable_cpus"] >= 1


def test_an_engine_that_is_not_installed_is_a_trouble(tmp_path: Path) -> None:
    config = RunConfig(engine=EngineConfig(name="vllm", model="a/b", command=(str(tmp_path / "vllm"),)))
    (trouble,) = run_here(RUN, config, {}).trouble
    assert "cannot be found or run: check --engine-command" in trouble


def test_a_server_that_does_not_answer_is_a_trouble() -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        (trouble,) = run_here(RUN, RunConfig(engine=EngineConfig(name="auto", model="", url=url)), {}).trouble
    assert trouble.startswith(f"nothing answers at {url}")


def test_an_unknown_server_is_expected_to_take_the_recorded_endpoint() -> None:
    chats = EngineFacts(name="openai", title="any", endpoints=("chat", "completions", "responses"))
    with odd_server() as server:
        config = RunConfig(engine=EngineConfig(name="auto", model="", url=server.url))
        here = run_here(replace(RUN, engine=chats), config, {})
    assert here.trouble == ()
    assert here.header.engine is not None
    assert here.header.engine.endpoints == chats.endpoints
    known = replace(chats, name="vllm", endpoints=("completions", "chat", "responses"))
    assert with_recorded_endpoint(known, chats) == known


@pytest.mark.parametrize(("word", "version"), [("bin/vllm", "0.11.0"), ("", "0.11.0"), ("other/bin/vllm", None)])
def test_the_version_in_another_environment_is_read_from_its_packages(
    tmp_path: Path, word: str, version: str | None
) -> None:
    (tmp_path / "lib/python3.12/site-packages/vllm-0.11.0.dist-info").mkdir(parents=True)
    assert environment_version(["nice", str(tmp_path / word)], "vllm") == version
    assert environment_version([str(tmp_path / word)], "sglang") is None


@pytest.mark.parametrize(
    ("recorded", "installed", "expected"),
    [
        ("0.10.1", "0.11.0", "0.11.0"),
        ("0.10.1", "0.10.1+cu128", "0.10.1"),
        ("0.10.1", "yes", "0.10.1"),
        ("vllm-0.2.1", "0.1.0", "vllm-0.2.1"),
        ("0.10.1", None, "0.10.1"),
    ],
)
def test_the_version_is_that_of_the_installed_package_where_they_are_comparable(
    recorded: str, installed: str | None, expected: str
) -> None:
    found = with_version(replace(FACTS, version=recorded), installed)
    assert found is not None
    assert found.version == expected
