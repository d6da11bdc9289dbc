"""Shell completion of option values; each function imports what it needs when it is called."""

from __future__ import annotations

from collections.abc import Iterable


def engines(incomplete: str) -> list[str]:
    """Engines for --engine."""
    from servetop.engines.engine_registry import engine_names

    return starting_with(incomplete, engine_names())


def sweeps(incomplete: str) -> list[str]:
    """Presets, and TOML files."""
    from servetop.run.sweep.presets import preset_names

    return starting_with(incomplete, [*preset_names(), *_files(incomplete, ".toml")])


def recordings(incomplete: str) -> list[str]:
    """`latest`, names in the recordings folder, samples, and recording files."""
    from servetop.recordings.library.paths import recordings_folder
    from servetop.recordings.library.samples import SAMPLE, sample_names

    known = sorted((each.stem for each in recordings_folder().glob("*.servetop")), reverse=True)
    return starting_with(incomplete, ["latest", *known, SAMPLE, *sample_names(), *_files(incomplete, ".servetop")])


def configs(incomplete: str) -> list[str]:
    """Recordings and TOML files for --config."""
    return list(dict.fromkeys([*recordings(incomplete), *starting_with(incomplete, _files(incomplete, ".toml"))]))


def datasets(incomplete: str) -> list[str]:
    """Datasets for --dataset-name."""
    from servetop.workload.datasets.catalogue import DATASETS, added_datasets

    return starting_with(incomplete, (*DATASETS, *added_datasets()))


def models(incomplete: str) -> list[str]:
    """Model aliases for --model, which accepts other names as well."""
    return _profiles("models", incomplete)


def gpus(incomplete: str) -> list[str]:
    """GPU profiles of the simulator."""
    return _profiles("gpus", incomplete)


def engine_profiles(incomplete: str) -> list[str]:
    """Engine profiles of the simulator."""
    return _profiles("engines", incomplete)


def endpoints(incomplete: str) -> list[str]:
    """APIs for --endpoint."""
    return starting_with(incomplete, ("completions", "chat", "responses", "generate"))


def themes(incomplete: str) -> list[str]:
    """Themes for --theme."""
    from servetop.tui.drawing.palette import THEME_NAMES

    return starting_with(incomplete, THEME_NAMES)


def _profiles(kind: str, incomplete: str) -> list[str]:
    from servetop.simulator.model.profile_files import profile_names

    return starting_with(incomplete, profile_names(kind))


def starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the names that start with the incomplete text."""
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str, suffix: str) -> list[str]:
    """Files with a suffix, and folders, that continue the incomplete path."""
    from pathlib import Path

    typed = incomplete.rpartition("/")[0]
    folder = Path(typed or ("/" if incomplete.startswith("/") else "."))
    lead = incomplete[: len(incomplete) - len(incomplete.rpartition("/")[2])]
    try:
        found = sorted(each for each in folder.iterdir() if each.suffix == suffix or (lead and each.is_dir()))
    except OSError:
        return []
    return [f"{lead}{each.name}{'/' if each.is_dir() else ''}" for each in found]
