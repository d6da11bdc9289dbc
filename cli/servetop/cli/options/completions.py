"""What the shell offers for a value, each looked up when a person asks for it: `--help` and runs import none of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from servetop.cli.framework.command_classes import PlainCommand

if TYPE_CHECKING:
    from typer._click import Context
    from typer._click.shell_completion import CompletionItem


def engines(incomplete: str) -> list[str]:
    """Names for --engine."""
    from servetop.engines.registry import engine_names

    return _beginning(incomplete, engine_names())


def sweeps(incomplete: str) -> list[str]:
    """Presets, and TOML files in reach."""
    from servetop.run.sweep.presets import preset_names

    return _beginning(incomplete, [*preset_names(), *_files(incomplete, ".toml")])


def recordings(incomplete: str) -> list[str]:
    """`latest`, the recordings folder's names, the samples, and recordings in reach."""
    from servetop.recordings.library.catalog import sample_names
    from servetop.recordings.library.paths import recordings_folder

    known = sorted((each.stem for each in recordings_folder().glob("*.servetop")), reverse=True)
    return _beginning(incomplete, ["latest", *known, *sample_names(), *_files(incomplete, ".servetop")])


def configs(incomplete: str) -> list[str]:
    """What --config takes."""
    return list(dict.fromkeys([*recordings(incomplete), *_beginning(incomplete, _files(incomplete, ".toml"))]))


def datasets(incomplete: str) -> list[str]:
    """Names for --dataset-name."""
    from servetop.workload.datasets.catalogue import DATASETS

    return _beginning(incomplete, DATASETS)


def models(incomplete: str) -> list[str]:
    """Aliases for --model; it takes other names as well."""
    return _profiles("models", incomplete)


def gpus(incomplete: str) -> list[str]:
    """The simulator's GPUs."""
    return _profiles("gpus", incomplete)


def engine_profiles(incomplete: str) -> list[str]:
    """The simulator's engines."""
    return _profiles("engines", incomplete)


def endpoints(incomplete: str) -> list[str]:
    """Names for --endpoint."""
    return _beginning(incomplete, ("completions", "chat", "responses", "generate"))


def themes(incomplete: str) -> list[str]:
    """Names for --theme."""
    from servetop.tui.drawing.palette import THEME_NAMES

    return _beginning(incomplete, THEME_NAMES)


class ServeCommand(PlainCommand):
    """`servetop serve`, whose options are those of the simulator's server."""

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """The options of the server that begin so."""
        from typer._click.shell_completion import CompletionItem

        from servetop.simulator.server.server import option_names

        return [CompletionItem(each) for each in _beginning(incomplete, option_names())]


def server_values(context: typer.Context, incomplete: str) -> list[str]:
    """Values of the simulator's server, by the option before."""
    before = (context.params.get("arguments") or [""])[-1]
    values = {"--gpu": gpus, "--engine-profile": engine_profiles, "--model": models}
    return values[before](incomplete) if before in values else []


def _profiles(kind: str, incomplete: str) -> list[str]:
    from servetop.simulator.model.profiles import profile_names

    return _beginning(incomplete, profile_names(kind))


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str, suffix: str) -> list[str]:
    """Files with that suffix, and folders to go on in, beside what is typed so far."""
    from pathlib import Path

    typed = incomplete.rpartition("/")[0]
    folder = Path(typed or ("/" if incomplete.startswith("/") else "."))
    lead = incomplete[: len(incomplete) - len(incomplete.rpartition("/")[2])]
    try:
        found = sorted(each for each in folder.iterdir() if each.suffix == suffix or (lead and each.is_dir()))
    except OSError:
        return []
    return [f"{lead}{each.name}{'/' if each.is_dir() else ''}" for each in found]
