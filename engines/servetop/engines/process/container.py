"""Engines in containers: converts an engine's command line to one for docker or podman, with pure functions.

The server listens on all addresses of its container, and its ports are published only on this machine's loopback
address. Command lines contain no secrets: variables are passed by name, and the runtime takes their values from its own
environment.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines.engine import LaunchCommand

RUNTIMES = ("docker", "podman")
"""Values of `--launcher`."""
PASSED_VARIABLES = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_ENDPOINT",
    "HF_HUB_OFFLINE",
    "VLLM_API_KEY",
    "OPENAI_API_KEY",
    "NGC_API_KEY",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
"""Environment variables that are passed to containers, if they are set."""
CACHE_INSIDE = "/root/.cache/huggingface"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
GPU_ARGUMENTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("docker", "nvidia"): ("--gpus", "all"),
    ("podman", "nvidia"): ("--device", "nvidia.com/gpu=all"),
    ("docker", "amd"): ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"),
    ("podman", "amd"): ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "keep-groups"),
}
"""Arguments that give a container the GPUs, by runtime and vendor; podman uses CDI (nvidia-ctk cdi generate)."""
SELINUX = ("--security-opt", "label=disable")
"""Lets podman's containers use devices and mounted folders on hosts with SELinux."""

_HOST_FLAG = re.compile(r"^--?(?:host|hostname|http-address|address|ip)$")
_HOST_PAIR = re.compile(r"^(--?(?:host|hostname|http-address|address|ip))=(.*)$")
_PYTHON = re.compile(r"^python[\d.]*$")
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The settings of an engine's container."""

    runtime: str = "docker"
    image: str
    name: str
    """The result of `container_name`."""
    gpus: str = "nvidia"
    """`nvidia`, `amd`, or empty: none."""
    model: str = ""
    """The model on the engine's command line; a local path is mounted read-only."""
    cache: Path | None = None
    """Existing folder of downloaded models, mounted as the hub library's cache."""
    shm_size: str = ""
    """Size of the shared memory, such as `16g`; empty: the host's shared memory is used (`--ipc=host`)."""
    more_ports: tuple[int, ...] = ()
    """Ports to publish besides the engine's own, such as a separate metrics port."""
    secrets: tuple[str, ...] = ()
    """Names of further variables to pass, such as the value of `--api-key-env`."""


def published_image(engine: str) -> str:
    """Return the image that the engine's makers publish; UsageError if it is unknown or needs a full name."""
    images, elsewhere = _published_data("images"), _published_data("elsewhere")
    if engine in images:
        return images[engine]
    if engine in elsewhere:
        raise UsageError(f"{engine} is published as {elsewhere[engine]}, in its makers' registry: give --image")
    raise UsageError(f"no image is known for {engine}: give one with --image (known for {', '.join(images)})")


def container_of(config: EngineConfig, *, run: str, port: int, gpus: str, cache: Path) -> Container:
    """Return the container of a configuration with a launcher; `run` identifies the run, `cache` need not exist.

    UsageError if no image is known for the engine.
    """
    return Container(
        runtime=config.launcher,
        image=config.image or published_image(config.name),
        name=container_name(run, port),
        gpus=gpus,
        model=config.model,
        cache=cache if os.path.isdir(cache) else None,
        secrets=(config.api_key_env,) if config.api_key_env else (),
    )


def gpu_vendor(root: Path = Path("/dev")) -> str:
    """Return the vendor of this machine's GPUs, from driver files: `nvidia`, `amd`, or empty for none."""
    driver_files = (("nvidia", "nvidiactl"), ("amd", "kfd"))
    return next((vendor for vendor, file in driver_files if (root / file).exists()), "")


def in_container(command: LaunchCommand, container: Container, *, environ: Mapping[str, str]) -> LaunchCommand:
    """Return the command that runs the same server in a container, in the foreground.

    `environ` is the environment of the runtime: only variables that are set there, or by the command itself, are
    passed. UsageError for an unknown runtime and for a path that cannot be mounted.
    """
    if container.runtime not in RUNTIMES:
        raise UsageError(f"unknown container runtime {container.runtime!r}: give --launcher {' or '.join(RUNTIMES)}")
    path = local_model(container.model)
    program, *arguments = [_inside(argument, container.model, path) for argument in listening_everywhere(command.argv)]
    options = [
        "--rm",
        "--init",
        "--name",
        container.name,
        *_published((command.port, *container.more_ports)),
        *(GPU_ARGUMENTS[container.runtime, container.gpus] if container.gpus else ()),
        *(SELINUX if container.runtime == "podman" else ()),
        *(("--shm-size", container.shm_size) if container.shm_size else ("--ipc=host",)),
        *_mounts(path, container.cache),
        *_passed((*command.env, *PASSED_VARIABLES, *container.secrets), {*environ, *command.env}),
    ]
    entry = ("--entrypoint", _program(program))
    argv = (container.runtime, "run", *options, *entry, container.image, *arguments)
    return replace(command, argv=argv, host=LOOPBACK[0])


def with_launcher(command: LaunchCommand, config: EngineConfig, *, environ: Mapping[str, str]) -> LaunchCommand:
    """Return the command, wrapped in a container if `config` has a launcher.

    UsageError as in `in_container`; EngineError if the launcher is not installed.
    """
    if not config.launcher:
        return command
    cache = model_cache(environ, Path.home())
    ports = () if command.metrics_port is None else (command.metrics_port,)
    settings = container_of(config, run=str(os.getpid()), port=command.port, gpus=gpu_vendor(), cache=cache)
    container = replace(settings, more_ports=ports)
    inside = in_container(command, container, environ=environ)
    if shutil.which(config.launcher) is None:
        raise EngineError(f"{config.launcher} is not installed here: install it, or give --launcher {_other(config)}")
    return replace(inside, cleanup=remove_container(container))


def _other(config: EngineConfig) -> str:
    return next(each for each in RUNTIMES if each != config.launcher)


def remove_container(container: Container) -> tuple[str, ...]:
    """Return the command that removes the container and its volumes, whatever its state."""
    return (container.runtime, "rm", "--force", "--volumes", container.name)


def container_name(run: str, port: int) -> str:
    """Return `servetop-RUN-PORT` in characters that runtimes accept; the port distinguishes the engines of a run."""
    return f"servetop-{_NAME.sub('-', run).strip('-.') or 'run'}-{port}"


def model_cache(environ: Mapping[str, str], home: Path) -> Path:
    """Return the hub library's cache folder on this machine."""
    if environ.get("HF_HOME"):
        return Path(environ["HF_HOME"])
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "huggingface"


def local_model(model: str) -> Path | None:
    """Return the local folder or file of a model; None for a hub name."""
    if not model:
        return None
    path = Path(model).expanduser()
    return path.absolute() if path.exists() else None


def listening_everywhere(argv: Sequence[str]) -> list[str]:
    """Replace loopback as the listen address, which cannot be reached from outside the container."""
    replaced: list[str] = []
    for argument in argv:
        pair = _HOST_PAIR.match(argument)
        if argument in LOOPBACK and replaced and _HOST_FLAG.match(replaced[-1]):
            argument = "0.0.0.0"
        elif pair and pair[2] in LOOPBACK:
            argument = f"{pair[1]}=0.0.0.0"
        replaced.append(argument)
    return replaced


def _inside(argument: str, model: str, path: Path | None) -> str:
    return str(path) if path is not None and argument in (model, str(Path(model).expanduser())) else argument


def _program(program: str) -> str:
    """Return the program's name, or its path in images: its path on this machine is not valid there."""
    name = Path(program).name
    return "python3" if _PYTHON.match(name) else _published_data("programs").get(name, name)


def _published_data(table: str) -> Mapping[str, str]:
    text = files("servetop.engines").joinpath("data/images.toml").read_text(encoding="utf-8")
    rows: dict[str, str] = tomllib.loads(text)[table]
    return rows


def _published(ports: Iterable[int]) -> list[str]:
    return [argument for port in dict.fromkeys(ports) for argument in ("-p", f"{LOOPBACK[0]}:{port}:{port}")]


def _mounts(model: Path | None, cache: Path | None) -> list[str]:
    argv: list[str] = []
    if model is not None:
        shared = hub_folder(model)
        argv += ["-v", _mount(shared, str(shared), "ro")]
    if cache is not None:
        argv += ["-v", _mount(cache.absolute(), CACHE_INSIDE, "rw"), "--env", f"HF_HOME={CACHE_INSIDE}"]
    return argv


def hub_folder(model: Path) -> Path:
    """Return the folder to mount; a model in the hub's cache consists of links into a folder beside it."""
    return next((each for each in (model, *model.parents) if each.name.startswith("models--")), model)


def _mount(source: Path, target: str, mode: str) -> str:
    if ":" in str(source):
        raise UsageError(
            f"cannot mount {source}, because its name has a colon: rename it, or use a link without a colon"
        )
    return f"{source}:{target}:{mode}"


def _passed(names: Iterable[str], known: set[str]) -> list[str]:
    return [argument for name in dict.fromkeys(names) if name in known for argument in ("--env", name)]
