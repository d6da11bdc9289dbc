"""`--config FILE`: option values from a TOML file, or from a recording whose run is to be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from servetop.core.errors import UsageError
from servetop.core.units import MS_PER_S

if TYPE_CHECKING:
    from servetop.core.config import RunConfig, StageConfig

META = "servetop.config_file"
"""Key of `Context.meta` for the ConfigFile in use."""
LOAD = ("request_rate", "num_prompts", "duration", "max_concurrency", "ramp_up_start_rps", "ramp_up_end_rps")
"""Options that say what one stage is."""
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """What a file says of a run."""

    values: Mapping[str, Any]
    """By parameter, as typed."""
    engine_args: tuple[str, ...] = ()
    stages: tuple[StageConfig, ...] = ()
    """Those of a recording, where options cannot say them; a load option on the command line replaces them."""
    drain_at_stages: bool = False


def read_config_file(path: Path) -> ConfigFile:
    """What the file says; UsageError for one that cannot be read, and for a key that is no option."""
    from servetop.cli.options.option_values import ENGINE_ARGS, RunOptions

    options = RunOptions()
    where = str(path)
    data, stages, drain = _file_data(path)
    values = options.values(data, where=where)
    engine_args = tuple(values.pop(ENGINE_ARGS, ()))
    options.parsed(values, where=where)
    return ConfigFile(values=values, engine_args=engine_args, stages=stages, drain_at_stages=drain)


def use_config_file(context: typer.Context, path: Path | None) -> Path | None:
    """Make a file's values the defaults of all other options; the callback of --config."""
    if path is not None and not context.resilient_parsing:
        found = read_config_file(path)
        context.default_map = dict(found.values)
        context.meta[META] = found
    return path


def settled(context: typer.Context) -> dict[str, Any]:
    """The options; where the command line says another kind of load than the file, the file's does not count."""
    options = dict(context.params)
    typed = {name for name in options if _on_command_line(context, name)}
    if "ramp" in typed:
        options |= {name: None for name in (*LOAD, "ramp_up_strategy") if name not in typed}
    elif typed & set(LOAD):
        options["ramp"] = None
        steady, ramped = ("request_rate",), ("ramp_up_start_rps", "ramp_up_end_rps", "ramp_up_strategy")
        other = ramped if "request_rate" in typed else steady if typed & set(ramped) else ()
        options |= {name: None for name in other if name not in typed}
    return options


def config_file_of(context: typer.Context) -> ConfigFile | None:
    """The file in use; its stages only where the command line says nothing of the load."""
    found: ConfigFile | None = context.meta.get(META)
    return found


def check_complete(config: RunConfig) -> None:
    """UsageError where a value was left out of the recording that the configuration comes from."""
    from servetop.core.config import to_data
    from servetop.core.text.redaction import REDACTED

    missing = next((path for path, text in _texts(to_data(config), "") if REDACTED in text), None)
    if missing is not None:
        raise UsageError(f"--config: the recording does not keep the secret value of {missing}: give it again")


def _texts(data: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(value, f"{path}.{key}".lstrip("."))
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value, path)
    elif isinstance(data, str):
        yield path, data


def _on_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _file_data(path: Path) -> tuple[Mapping[str, Any], tuple[StageConfig, ...], bool]:
    import tomllib  # not for every start

    try:
        if not path.is_file() and path.suffix != ".toml":
            return _recorded(str(path))  # latest, or a name in the recordings folder
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                return _recorded(str(path))
        return tomllib.loads(path.read_text(encoding="utf-8")), (), False
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}: give a TOML file or a recording") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--config {path} is neither a recording nor a TOML file: {error}") from None


def _recorded(name: str) -> tuple[Mapping[str, Any], tuple[StageConfig, ...], bool]:
    from servetop.recordings.library.catalog import resolve
    from servetop.recordings.read.reader import RecordingReader

    reader = RecordingReader.open(resolve(name))
    try:
        config = reader.header.config
    finally:
        reader.close()
    warmups = sum(stage.num_prompts or 0 for stage in config.stages if stage.warmup)
    measured = tuple(stage for stage in config.stages if not stage.warmup)
    single = _as_options(measured, drains=config.drain_at_stages)
    data = recorded_data(config) | {"num_warmups": warmups} | (single or {})
    return data, () if single is not None else measured, config.drain_at_stages


def recorded_data(config: RunConfig) -> dict[str, Any]:
    """A configuration in the form of a `--config` file, without its stages."""
    from servetop.core.config import to_data

    data = to_data(config)
    for derived in ("stages", "predicted", "drain_at_stages", "drain_timeout", "goodput"):
        data.pop(derived, None)
    data["workload"].pop("trace_rate", None)
    if not data["cooldown"]:
        del data["cooldown"]
    data["metric_percentiles"] = ",".join(f"{each:.12g}" for each in config.metric_percentiles)
    data["workers"] = config.workers or "auto"
    data["goodput"] = [f"{metric}:{limit * MS_PER_S:.12g}" for metric, limit in config.goodput.items()]
    url = data["engine"].pop("url", None)
    replicas = data["engine"].pop("more_urls", [])
    if url is not None:
        data["engine"]["url"] = [url, *replicas]
    return {key: _without_empty(value) for key, value in data.items() if value not in ("", [], {})}


def _without_empty(value: Any) -> Any:
    """Tables without keys that say nothing: an empty text is an option's way of not being given."""
    if not isinstance(value, Mapping):
        return value
    return {key: _without_empty(each) for key, each in value.items() if each not in ("", [], {})}


def _as_options(stages: tuple[StageConfig, ...], *, drains: bool) -> dict[str, Any] | None:
    """The options of a load of one stage; None for one that options cannot say."""
    if len(stages) != 1 or drains or stages[0].max_num_seqs is not None:
        return None
    stage = stages[0]
    rate = str(stage.request_rate)
    said: dict[str, Any] = {name: getattr(stage, name) for name in ("max_concurrency", "duration", "num_prompts")}
    if stage.ramp_from is None:
        said["request_rate"] = rate
    else:
        said |= {"ramp_up_start_rps": str(stage.ramp_from), "ramp_up_end_rps": rate}
        said["ramp_up_strategy"] = stage.ramp_strategy
    return {name: value for name, value in said.items() if value is not None}
