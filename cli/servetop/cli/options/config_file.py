"""`--config FILE`: option values from a TOML file, or from a recording whose run is to be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import GivenValues
from servetop.cli.options.file_keys import ENGINE_ARGS, values_of_file
from servetop.cli.options.run_options import RunOptions
from servetop.core.errors import UsageError
from servetop.core.units import MS_PER_S

if TYPE_CHECKING:
    from servetop.core.config import RunConfig, StageConfig

_STEADY, _RAMPED = ("request_rate",), ("ramp_up_start_rps", "ramp_up_end_rps", "ramp_up_strategy")
_ENDS = ("num_prompts", "duration", "max_concurrency")
_STAGE = {*_STEADY, *_RAMPED, *_ENDS}
"""Options that describe a load of one stage."""
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlan:
    """The load of a recording that options cannot describe; a load option on the command line replaces it."""

    stages: tuple[StageConfig, ...] = ()
    drain_at_stages: bool = False
    until: tuple[str, ...] = ()
    cell_thresholds: tuple[str, ...] = ()
    restart: str | None = None

    def applied_to(self, config: RunConfig) -> RunConfig:
        """Return a configuration with what belongs to the stages of a sweep; a server at a URL is not restarted."""
        return replace(
            config,
            drain_at_stages=self.drain_at_stages,
            until=self.until,
            cell_thresholds=self.cell_thresholds,
            restart=self.restart if config.engine.url is None else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """The options in a file."""

    values: GivenValues
    engine_args: tuple[str, ...] = ()
    plan: RecordedPlan = RecordedPlan()


def with_config_file(given: GivenValues) -> tuple[RunOptions, ConfigFile | None]:
    """Return the options of a command line, with those of its --config file where it gives none."""
    path = given.get("config")
    if path is None:
        return read_options(RunOptions, given), None
    file = read_config_file(Path(str(path)))
    return read_options(RunOptions, {**_without_other_load(file.values, given), **given}), file


def read_config_file(path: Path) -> ConfigFile:
    """Read a TOML file or a recording; UsageError if it cannot be read or has an unknown key or a wrong value."""
    where = str(path)
    data, plan = _file_data(path)
    values = values_of_file(data, where=where)
    engine_args = values.pop(ENGINE_ARGS, ())
    read_options(RunOptions, values, where=where)
    assert not isinstance(engine_args, str | bool)
    return ConfigFile(values=values, engine_args=tuple(engine_args), plan=plan)


def _without_other_load(values: GivenValues, given: GivenValues) -> GivenValues:
    """Return the values of a file without its load, where the command line gives another kind of load."""
    replaced: set[str] = set()
    if "ramp" in given:
        replaced = _STAGE
    elif _STAGE & set(given):
        replaced = {"ramp"}
        if "request_rate" in given:
            replaced |= set(_RAMPED)
        elif set(_RAMPED) & set(given):
            replaced |= set(_STEADY)
    return {name: value for name, value in values.items() if name not in replaced}


def check_complete(config: RunConfig) -> None:
    """UsageError if the configuration comes from a recording that left out a secret value."""
    missing = missing_secrets(config)
    if missing:
        raise UsageError(f"--config: the recording does not contain the secret value of {missing[0]}: give it again")


def missing_secrets(config: RunConfig) -> list[str]:
    """Return the keys whose secret value a recording left out, as in `workload.headers.X-Api-Key`."""
    from servetop.core.config import to_data
    from servetop.core.text.redaction import REDACTED

    return list(dict.fromkeys(path for path, text in _texts(to_data(config), "") if REDACTED in text))


def _texts(data: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(value, f"{path}.{key}".lstrip("."))
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value, path)
    elif isinstance(data, str):
        yield path, data


def _file_data(path: Path) -> tuple[Mapping[str, Any], RecordedPlan]:
    import tomllib  # not for every start

    try:
        if not path.is_file() and path.suffix != ".toml":
            return _recorded(str(path))  # latest, or a name in the recordings folder
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                return _recorded(str(path))
        return tomllib.loads(path.read_text(encoding="utf-8")), RecordedPlan()
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}: use a TOML file or a recording") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--config {path} is neither a recording nor a TOML file: {error}") from None


def _recorded(name: str) -> tuple[Mapping[str, Any], RecordedPlan]:
    from servetop.recordings.library.catalog import resolve
    from servetop.recordings.read.reader import RecordingReader

    reader = RecordingReader.open(resolve(name))
    try:
        config = reader.header.config
    finally:
        reader.close()
    if config.search is not None:
        raise UsageError(f"{name} is the recording of a search, which has no load to repeat: use servetop search")
    if config.watch is not None:
        raise UsageError(f"{name} is the recording of a watch, which has no load to repeat: use servetop watch")
    warmups = next((stage.num_prompts or 0 for stage in config.stages if stage.warmup), 0)
    measured = tuple(stage for stage in config.stages if not stage.warmup)
    single = _as_options(measured, drains=config.drain_at_stages)
    data = recorded_data(config) | {"num_warmups": warmups} | (single or {})
    if single is not None:
        return data, RecordedPlan()
    conditions = {"until": config.until, "cell_thresholds": config.cell_thresholds}
    return data, RecordedPlan(
        stages=measured, drain_at_stages=config.drain_at_stages, restart=config.restart, **conditions
    )


def recorded_data(config: RunConfig) -> dict[str, Any]:
    """Return a configuration in the form of a `--config` file, without its stages."""
    from servetop.core.config import to_data

    data = to_data(config)
    for derived in (
        "stages",
        "predicted",
        "published",
        "drain_at_stages",
        "goodput",
        "search",
        "until",
        "cell_thresholds",
        "restart",
    ):
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
    """Tables without their empty values, which stand for options that were not given."""
    if not isinstance(value, Mapping):
        return value
    return {key: _without_empty(each) for key, each in value.items() if each not in ("", [], {})}


def _as_options(stages: tuple[StageConfig, ...], *, drains: bool) -> dict[str, Any] | None:
    """Return the options of a load of one stage; None for a load that options cannot describe."""
    if len(stages) != 1 or drains or stages[0].max_num_seqs is not None:
        return None
    stage = stages[0]
    rate = str(stage.request_rate)
    values: dict[str, Any] = {name: getattr(stage, name) for name in _ENDS}
    if stage.ramp_from is None:
        values["request_rate"] = rate
    else:
        values |= {"ramp_up_start_rps": str(stage.ramp_from), "ramp_up_end_rps": rate}
        values["ramp_up_strategy"] = stage.ramp_strategy
    return {name: value for name, value in values.items() if value is not None}
