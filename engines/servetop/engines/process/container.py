"""Engines as containers: the command lines of docker and podman, as pure functions of what an engine would run itself.

Nothing here starts anything. The container's server listens on all of its own addresses, and its ports are published on
this machine's loopback address alone. No secret stands on a command line: variables are passed by name, and the runtime
takes their values from its own environment.
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
"""Values of `--launcher` besides none."""
PASSED_ON = (
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "VLLM_API_KEY", "OPENAI_API_KEY",
    "NGC_API_KEY", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
"""Variables that a container gets, by name, where they are set."""
CACHE_INSIDE = "/root/.cache/huggingface"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
GPU_ARGUMENTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("docker", "nvidia"): ("--gpus", "all"),
    ("podman", "nvidia"): ("--device", "nvidia.com/gpu=all"),
    ("docker", "amd"): ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"),
    ("podman", "amd"): ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "keep-groups"),
}
"""How each runtime hands devices over; podman by the Container Device Interface (nvidia-ctk cdi generate)."""
SELINUX = ("--security-opt", "label=disable")
"""Podman's usual hosts keep containers from devices and mounted folders otherwise."""

_HOST_FLAG = re.compile(r"^--?(?:host|hostname|http-address|address|ip)$")
_HOST_PAIR = re.compile(r"^(--?(?:host|hostname|http-address|address|ip))=(.*)$")
_PYTHON = re.compile(r"^python[\d.]*$")
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How an engine's container is to be run."""

    runtime: str = "docker"
    image: str
    name: str
    """As `container_name` makes it."""
    gpus: str = "nvidia"
    """`nvidia`, `amd`, or empty: none."""
    model: str = ""
    """The model as it stands on the engine's command line; a path of this machine is mounted, read-only."""
    cache: Path | None = None
    """Folder of downloaded models, mounted where the hub's library looks for it; it has to be there."""
    shm_size: str = ""
    """Size of the shared memory, as `16g`; empty: the host's own is used (`--ipc=host`)."""
    more_ports: tuple[int, ...] = ()
    """To be published besides the engine's own: that of a metrics page of its own."""
    secrets: tuple[str, ...] = ()
    """Names of further variables to pass on, such as the one that `--api-key-env` names."""


def published_image(engine: str) -> str:
    """The image that an engine's makers publish; UsageError when it has to be named in full, or is not known."""
    images, elsewhere = _published_data("images"), _published_data("elsewhere")
    if engine in images:
        return images[engine]
    if engine in elsewhere:
        raise UsageError(f"{engine} is published as {elsewhere[engine]}, in a registry of its makers: give --image")
    raise UsageError(f"servetop knows no image of {engine}: name one with --image ({', '.join(images)} have one)")


def container_of(config: EngineConfig, *, run: str, port: int, gpus: str, cache: Path) -> Container:
    """The container that a configuration with a launcher asks for; `run` names the run, `cache` may not exist.

    UsageError when no image is known for the engine.
    """
    return Container(
        runtime=config.launcher,
        image=config.image or published_image(config.name),
        name=container_name(run, port),
        gpus=gpus,
        model=config.model,
        cache=cache if cache.is_dir() else None,
        secrets=(config.api_key_env,) if config.api_key_env else (),
    )


def gpu_maker(root: Path = Path("/dev")) -> str:
    """Whose GPUs this machine has, by the files of their drivers: `nvidia`, `amd`, or empty."""
    signs = (("nvidia", "nvidiactl"), ("amd", "kfd"))
    return next((maker for maker, sign in signs if (root / sign).exists()), "")


def in_container(command: LaunchCommand, container: Container, *, environ: Mapping[str, str]) -> LaunchCommand:
    """The command that runs the same server in a container, and stays in the foreground until it ends.

    `environ` is the environment that the runtime will have: only variables that are set there, or by the command
    itself, are passed on. UsageError for an unknown runtime and for a path that cannot be mounted.
    """
    if container.runtime not in RUNTIMES:
        raise UsageError(f"{container.runtime!r} runs no containers: --launcher is one of {', '.join(RUNTIMES)}")
    path = local_model(container.model)
    program, *arguments = [_inside(word, container.model, path) for word in reachable(command.argv)]
    options = [
        "--rm", "--init", "--name", container.name, *_published((command.port, *container.more_ports)),
        *(GPU_ARGUMENTS[container.runtime, container.gpus] if container.gpus else ()),
        *(SELINUX if container.runtime == "podman" else ()),
        *(("--shm-size", container.shm_size) if container.shm_size else ("--ipc=host",)),
        *_mounts(path, container.cache),
        *_passed((*command.env, *PASSED_ON, *container.secrets), {*environ, *command.env}),
    ]  # fmt: skip
    entry = ("--entrypoint", _program(program))
    argv = (container.runtime, "run", *options, *entry, container.image, *arguments)
    return replace(command, argv=argv, host=LOOPBACK[0])


def contained(command: LaunchCommand, config: EngineConfig, *, environ: Mapping[str, str]) -> LaunchCommand:
    """As `config` asks: the command itself, or in a container of its launcher.

    UsageError as `in_container`; EngineError where the launcher is not installed.
    """
    if not config.launcher:
        return command
    cache = model_cache(environ, Path.home())
    ports = () if command.metrics_port is None else (command.metrics_port,)
    made = container_of(config, run=str(os.getpid()), port=command.port, gpus=gpu_maker(), cache=cache)
    container = replace(made, more_ports=ports)
    inside = in_container(command, container, environ=environ)
    if shutil.which(config.launcher) is None:
        raise EngineError(f"{config.launcher} is not installed here: install it, or take --launcher {_other(config)}")
    return replace(inside, cleanup=remove_container(container))


def _other(config: EngineConfig) -> str:
    return next(each for each in RUNTIMES if each != config.launcher)


def remove_container(container: Container) -> tuple[str, ...]:
    """The command that leaves nothing of it, whatever state it is in."""
    return (container.runtime, "rm", "--force", "--volumes", container.name)


def container_name(run: str, port: int) -> str:
    """`servetop-RUN-PORT`, in the letters that runtimes take; the port tells engines of one run apart."""
    return f"servetop-{_NAME.sub('-', run).strip('-.') or 'run'}-{port}"


def model_cache(environ: Mapping[str, str], home: Path) -> Path:
    """Where the hub's library keeps downloaded models on this machine."""
    if environ.get("HF_HOME"):
        return Path(environ["HF_HOME"])
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "huggingface"


def local_model(model: str) -> Path | None:
    """The folder or file of this machine that a model's name stands for; None for a name on a hub."""
    if not model:
        return None
    path = Path(model).expanduser()
    return path.absolute() if path.exists() else None


def reachable(argv: Sequence[str]) -> list[str]:
    """The command line with all addresses to listen on instead of loopback, which in a container nobody can reach."""
    words: list[str] = []
    for word in argv:
        pair = _HOST_PAIR.match(word)
        if word in LOOPBACK and words and _HOST_FLAG.match(words[-1]):
            word = "0.0.0.0"
        elif pair and pair[2] in LOOPBACK:
            word = f"{pair[1]}=0.0.0.0"
        words.append(word)
    return words


def _inside(word: str, model: str, path: Path | None) -> str:
    return str(path) if path is not None and word in (model, str(Path(model).expanduser())) else word


def _program(program: str) -> str:
    """By its bare name, or where images have it: this machine's path to it means nothing there."""
    name = Path(program).name
    return "python3" if _PYTHON.match(name) else _published_data("programs").get(name, name)


def _published_data(table: str) -> Mapping[str, str]:
    text = files("servetop.engines").joinpath("data/images.toml").read_text(encoding="utf-8")
    rows: dict[str, str] = tomllib.loads(text)[table]
    return rows


def _published(ports: Iterable[int]) -> list[str]:
    return [word for port in dict.fromkeys(ports) for word in ("-p", f"{LOOPBACK[0]}:{port}:{port}")]


def _mounts(model: Path | None, cache: Path | None) -> list[str]:
    words: list[str] = []
    if model is not None:
        shared = hub_folder(model)
        words += ["-v", _mount(shared, str(shared), "ro")]
    if cache is not None:
        words += ["-v", _mount(cache.absolute(), CACHE_INSIDE, "rw"), "--env", f"HF_HOME={CACHE_INSIDE}"]
    return words


def hub_folder(model: Path) -> Path:
    """A model in the hub's cache consists of links to files beside it: the folder that holds both, else itself."""
    return next((each for each in (model, *model.parents) if each.name.startswith("models--")), model)


def _mount(source: Path, target: str, mode: str) -> str:
    if ":" in str(source):
        raise UsageError(f"{source} cannot be mounted, its name has a colon: move it, or make a link without one")
    return f"{source}:{target}:{mode}"


def _passed(names: Iterable[str], known: set[str]) -> list[str]:
    return [word for name in dict.fromkeys(names) if name in known for word in ("--env", name)]
