"""What the configurations A and B of a series are: one line each, so that a pasted table explains itself."""

from __future__ import annotations

from servetop.analysis.manifest.manifest_diff import manifest_differences
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.format.header import as_recorded
from servetop.run.pairs.series_folder import ArmConfigs

_ENGINE_OPTIONS = "engine.args."
_NOT_SET = "not set"


def arm_texts(configs: ArmConfigs) -> tuple[str, str]:
    """Return label, engine, model and every setting that differs: `sim · llama-2-7b · max_num_seqs 64`."""
    differing = manifest_differences(*(_header(each) for each in (configs.a, configs.b)))
    known = {each.key for each in differing}
    shown = [each for each in differing if _setting(each.key) not in known]
    return (
        _text(configs.a, [(each.key, each.a) for each in shown]),
        _text(configs.b, [(each.key, each.b) for each in shown]),
    )


def _setting(key: str) -> str:
    """Return the setting of which an option of the engine is another spelling; empty for other keys."""
    return key.removeprefix(_ENGINE_OPTIONS).replace("-", "_") if key.startswith(_ENGINE_OPTIONS) else ""


def _text(config: RunConfig, settings: list[tuple[str, str | None]]) -> str:
    engine = config.engine
    names = [config.label, engine.known_as, engine.model]
    return " · ".join([each for each in names if each] + [f"{key} {value or _NOT_SET}" for key, value in settings])


def _header(config: RunConfig) -> RunHeader:
    """Return the header of a run, without secrets."""
    return RunHeader(config=as_recorded(config), anchor=ClockAnchor(origin_ns=0, wall_epoch_s=0.0))
