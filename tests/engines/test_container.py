"""The command line of an engine in a container: reachable on loopback only, and without secrets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.engines.engine import LaunchCommand
from servetop.engines.process.container import (
    Container,
    container_name,
    container_of,
    gpu_vendor,
    in_container,
    listening_everywhere,
    local_model,
    model_cache,
    published_image,
    remove_container,
)

VLLM = LaunchCommand(
    argv=(
        "/opt/venv/bin/vllm",
        "serve",
        "facebook/opt-125m",
        "--host",
        "127.0.0.1",
        "--port",
        "8123",
        "--dtype",
        "half",
    ),
    env={"DO_NOT_TRACK": "1"},
    port=8123,
)
CONTAINER = Container(image="vllm/vllm-openai:latest", name="servetop-run-8123", model="facebook/opt-125m")


def test_a_docker_command_line_word_by_word() -> None:
    command = in_container(VLLM, CONTAINER, environ={"HF_TOKEN": "hf_secret", "HOME": "/home/me"})
    assert command.argv == (
        "docker", "run", "--rm", "--init", "--name", "servetop-run-8123",
        "-p", "127.0.0.1:8123:8123", "--gpus", "all", "--ipc=host",
        "--env", "DO_NOT_TRACK", "--env", "HF_TOKEN",
        "--entrypoint", "vllm", "vllm/vllm-openai:latest",
        "serve", "facebook/opt-125m", "--host", "0.0.0.0", "--port", "8123", "--dtype", "half",
    )  # fmt: skip
    assert (command.host, command.port, command.env) == ("127.0.0.1", 8123, {"DO_NOT_TRACK": "1"})


def test_a_podman_command_line_has_devices_by_cdi() -> None:
    argv = in_container(VLLM, replace(CONTAINER, runtime="podman", shm_size="16g"), environ={}).argv
    start = argv[: argv.index("--env")]
    assert start == (
        "podman", "run", "--rm", "--init", "--name", "servetop-run-8123", "-p", "127.0.0.1:8123:8123",
        "--device", "nvidia.com/gpu=all", "--security-opt", "label=disable", "--shm-size", "16g",
    )  # fmt: skip
    assert "vllm/vllm-openai:latest" in argv


@pytest.mark.parametrize(("gpus", "words"), [("amd", "--device /dev/kfd --device /dev/dri"), ("", "")])
def test_devices_of_amd_and_none_at_all(gpus: str, words: str) -> None:
    line = " ".join(in_container(VLLM, replace(CONTAINER, gpus=gpus), environ={}).argv)
    assert words in line
    assert "--gpus" not in line


def test_a_model_folder_is_mounted_at_its_own_path_for_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my-model").mkdir()
    monkeypatch.chdir(tmp_path)
    command = replace(VLLM, argv=("vllm", "serve", "my-model", "--port", "8123"))
    argv = in_container(command, replace(CONTAINER, model="my-model"), environ={}).argv
    folder = tmp_path / "my-model"
    assert argv[argv.index("-v") + 1] == f"{folder}:{folder}:ro"
    assert argv[-4:] == ("serve", str(folder), "--port", "8123")


def test_a_model_of_the_hubs_cache_brings_the_files_that_it_links_to(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--facebook--opt-125m" / "snapshots" / "1a2b"
    snapshot.mkdir(parents=True)
    command = replace(VLLM, argv=("vllm", "serve", str(snapshot)))
    argv = in_container(command, replace(CONTAINER, model=str(snapshot)), environ={}).argv
    shared = tmp_path / "models--facebook--opt-125m"
    assert argv[argv.index("-v") + 1] == f"{shared}:{shared}:ro"
    assert argv[-1] == str(snapshot)


def test_downloaded_models_are_shared_with_the_container(tmp_path: Path) -> None:
    argv = in_container(VLLM, replace(CONTAINER, cache=tmp_path), environ={}).argv
    assert f"{tmp_path}:/root/.cache/huggingface:rw" in argv
    assert "HF_HOME=/root/.cache/huggingface" in argv


def test_a_path_with_a_colon_cannot_be_mounted(tmp_path: Path) -> None:
    odd = tmp_path / "a:b"
    odd.mkdir()
    with pytest.raises(UsageError, match=r"cannot mount .*, because its name has a colon"):
        in_container(VLLM, replace(CONTAINER, model=str(odd)), environ={})


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown container runtime 'lxc': give --launcher docker or podman"):
        in_container(VLLM, replace(CONTAINER, runtime="lxc"), environ={})


def test_a_metrics_port_of_its_own_is_published_too() -> None:
    argv = in_container(VLLM, replace(CONTAINER, more_ports=(8002,)), environ={}).argv
    assert [word for word in argv if word.startswith("127.0.0.1:")] == ["127.0.0.1:8123:8123", "127.0.0.1:8002:8002"]


@pytest.mark.parametrize(
    ("program", "inside"),
    [
        ("/usr/bin/python3.12", "python3"),
        ("/opt/llama.cpp/build/bin/llama-server", "/app/llama-server"),
        ("trtllm-serve", "trtllm-serve"),
    ],
)
def test_the_program_is_the_images_own(program: str, inside: str) -> None:
    argv = in_container(replace(VLLM, argv=(program, "-x")), CONTAINER, environ={}).argv
    assert argv[argv.index("--entrypoint") + 1] == inside


secrets = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", min_size=24, max_size=40)


@given(secrets, secrets, st.sampled_from(["docker", "podman"]))
def test_command_lines_contain_no_secrets(token: str, key: str, runtime: str) -> None:
    environ = {"HF_TOKEN": token, "MY_KEY": key, "PATH": "/bin"}
    command = in_container(VLLM, replace(CONTAINER, runtime=runtime, secrets=("MY_KEY",)), environ=environ)
    line = " ".join(command.argv)
    assert "--env HF_TOKEN --env MY_KEY" in line
    assert token not in line
    assert key not in line
    assert "PATH" not in line


@pytest.mark.parametrize(
    ("words", "inside"),
    [
        (["--hostname", "localhost"], ["--hostname", "0.0.0.0"]),
        (["--host=127.0.0.1"], ["--host=0.0.0.0"]),
        (["--http-address", "127.0.0.1"], ["--http-address", "0.0.0.0"]),
        (["--host", "0.0.0.0"], ["--host", "0.0.0.0"]),
        (["--proxy", "127.0.0.1"], ["--proxy", "127.0.0.1"]),
        (["127.0.0.1"], ["127.0.0.1"]),
    ],
)
def test_a_server_listens_where_it_can_be_reached(words: list[str], inside: list[str]) -> None:
    assert listening_everywhere(words) == inside


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8))
def test_all_other_arguments_reach_the_engine_as_they_are(words: list[str]) -> None:
    command = replace(VLLM, argv=("vllm", "serve", *words))
    assert in_container(command, CONTAINER, environ={}).argv[-len(words) :] == tuple(
        listening_everywhere(["serve", *words])[1:]
    )


def test_a_container_is_removed_by_its_name() -> None:
    assert remove_container(CONTAINER) == ("docker", "rm", "--force", "--volumes", "servetop-run-8123")


def test_a_containers_name_takes_any_run() -> None:
    assert container_name("20261121-a run: ü/1", 8123) == "servetop-20261121-a-run-1-8123"
    assert container_name("…", 1) == "servetop-run-1"


def test_engines_have_the_images_that_their_makers_publish() -> None:
    assert published_image("vllm") == "vllm/vllm-openai:latest"
    with pytest.raises(UsageError, match="published as huggingface/text-generation-inference, in its makers"):
        published_image("tgi")
    with pytest.raises(UsageError, match="no image is known for deepspeed-mii: give one with --image"):
        published_image("deepspeed-mii")


def test_a_configuration_gives_the_container(tmp_path: Path) -> None:
    config = EngineConfig(name="vllm", model="facebook/opt-125m", launcher="podman", api_key_env="MY_KEY")
    container = container_of(config, run="20261121", port=8123, gpus="amd", cache=tmp_path / "none")
    assert container == Container(
        runtime="podman", image="vllm/vllm-openai:latest", name="servetop-20261121-8123", gpus="amd",
        model="facebook/opt-125m", cache=None, secrets=("MY_KEY",),
    )  # fmt: skip
    own = replace(config, image="mine:1")
    assert container_of(own, run="r", port=1, gpus="", cache=tmp_path).image == "mine:1"
    assert container_of(own, run="r", port=1, gpus="", cache=tmp_path).cache == tmp_path


def test_the_maker_of_the_gpus_is_known_by_the_files_of_the_driver(tmp_path: Path) -> None:
    assert gpu_vendor(tmp_path) == ""
    (tmp_path / "kfd").touch()
    assert gpu_vendor(tmp_path) == "amd"
    (tmp_path / "nvidiactl").touch()
    assert gpu_vendor(tmp_path) == "nvidia"


def test_the_cache_of_models_is_where_the_hubs_library_has_it() -> None:
    home = Path("/home/me")
    assert model_cache({}, home) == home / ".cache/huggingface"
    assert model_cache({"XDG_CACHE_HOME": "/c"}, home) == Path("/c/huggingface")
    assert model_cache({"HF_HOME": "/data/hf", "XDG_CACHE_HOME": "/c"}, home) == Path("/data/hf")


def test_a_hub_name_is_not_a_local_model(tmp_path: Path) -> None:
    assert local_model("facebook/opt-125m") is None
    assert local_model("") is None
    assert local_model(str(tmp_path)) == tmp_path
