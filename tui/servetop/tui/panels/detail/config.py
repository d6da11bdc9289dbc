"""The configuration panel: the recording's header."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from textual.reactive import reactive

from servetop.core.config import to_data
from servetop.core.config_values.field_units import unit_of
from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.config_values.published_study import PublishedStudy
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.core.units import MS_PER_S
from servetop.tui.drawing.text_runs import TextRow, fitted
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_NAME = 34
"""Cells of a setting's name."""
_LEAST_VALUE = 10
"""Cells of its value, at least."""


class ConfigPanel(Panel):
    """One setting after the other, starting at row `top`."""

    top: reactive[int] = reactive(0)

    def title(self, frame: Frame) -> Sequence[TextRow]:  # noqa: ARG002
        return [[("Configuration", "title")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return [fitted(row, width) for row in shown_rows(frame, width)[self.top : self.top + height]]


def shown_rows(frame: Frame, width: int) -> list[TextRow]:
    """Return the table of replicas at this time, if there are several; then the settings."""
    replicas = frame.replicas(width)
    return [*([*replicas, []] if replicas else []), *config_rows(frame.header, width)]


def _of_one_server(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that only several servers have, if there is one, and without the table of screen 7."""
    return {key: value for key, value in settings.items() if (value or key not in _OF_SEVERAL) and key != "exported"}


_OF_SEVERAL = ("more_urls", "front_door", "replica_urls")
_OWN_SECTIONS = ("engine", "workload", "stages", "predicted", "published")


def config_rows(header: RunHeader, width: int) -> list[TextRow]:
    """Sections with their settings; values of HTTP headers are hidden because they may be secrets."""
    config = to_data(header.config)
    hidden = dict.fromkeys(header.config.workload.headers, "(not shown)")
    config["workload"] = config["workload"] | {"headers": hidden}
    sections = {
        "run": {key: value for key, value in config.items() if key not in _OWN_SECTIONS},
        "engine, as configured": _of_one_server(config["engine"]),
        "engine, as detected": _of_one_server(to_data(header.engine)) if header.engine else {"state": "not ready yet"},
        "workload": config["workload"],
        "stages": {str(number + 1): stage.label for number, stage in enumerate(header.config.stages)},
        "predicted, output tok/s": dict(map(_predicted, header.config.predicted)),
        "published": {} if header.config.published is None else _published(header.config.published),
        "versions": header.versions,
        "host": header.host,
    }
    described = {
        "run": header.config,
        "engine, as configured": header.config.engine,
        "workload": header.config.workload,
    }
    rows: list[TextRow] = []
    for name, settings in (sections if header.imported is None else _imported(header)).items():
        if not settings and name.startswith(("predicted", "published")):
            continue
        rows.append([(name, "title")])
        unit = partial(unit_of, described.get(name))
        for key, value in _flat(settings, unit):
            rows += _setting(sanitize_line(key), sanitize_line(value), width)
        rows.append([])
    return rows[:-1]


def _imported(header: RunHeader) -> dict[str, Mapping[str, Any]]:
    """Return the sections of a run of another load generator: what its file says."""
    config, workload = header.config, header.config.workload
    known = {"endpoint": workload.endpoint, "tokenizer": workload.tokenizer, "burstiness": workload.burstiness}
    return {
        "imported": header.manifest["imported"],
        "run": {"label": config.label, "metadata": config.metadata},
        "engine": {"name": config.engine.name, "model": config.engine.model},
        "workload": known,
        "stages": {str(number + 1): stage.label for number, stage in enumerate(config.stages)},
        "versions": header.versions,
    }


def _predicted(cell: PredictedCell) -> tuple[str, str]:
    batch, rate = formats.exact(cell.max_num_seqs), formats.number(cell.request_rate)
    return f"batch {batch}, {rate} req/s", formats.count(cell.output_throughput)


def _published(study: PublishedStudy) -> dict[str, str]:
    """Source, set-up, and the figures by cell."""
    cells = {}
    for cell in study.cells:
        batch, rate = formats.exact(cell.max_num_seqs), formats.number(cell.request_rate)
        preemptions = "" if cell.preemptions is None else f"{formats.exact(cell.preemptions)} preemptions"
        tokens = "" if cell.output_throughput is None else formats.count(cell.output_throughput)
        cells[f"batch {batch}, {rate} req/s"] = ", ".join(filter(None, (tokens, preemptions)))
    return {"source": study.source, "set-up": study.set_up, **cells}


def _setting(key: str, value: str, width: int) -> list[TextRow]:
    """Return the name, and the value beside it, in as many rows as it needs."""
    lines = textwrap.wrap(value, max(width - _NAME, _LEAST_VALUE), break_on_hyphens=False) or [value]
    names = (key, *[""] * (len(lines) - 1))
    return [[(f"  {name:<{_NAME - 3}} ", "muted"), (line, "")] for name, line in zip(names, lines, strict=True)]


def _flat(settings: Mapping[str, Any], unit: Callable[[str], str], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values as text; the settings of a mapping have its name before theirs, and its unit."""
    for key, value in settings.items():
        own = unit(key)
        if isinstance(value, Mapping) and value:
            yield from _flat(value, lambda _, own=own: own, f"{prefix}{key}.")  # type: ignore[misc]
        elif isinstance(value, list | tuple):
            text = shlex.join(value) if own == "arguments" else ", ".join(_value(each, own) for each in value)
            yield f"{prefix}{key}", text or formats.UNKNOWN
        else:
            yield f"{prefix}{key}", _value(value, own)


def _value(value: object, unit: str) -> str:
    """Return a setting in a reader's words: `yes`, `500 ms`, `128 tokens`, `–` for none."""
    match value:
        case None | "":
            return formats.UNKNOWN
        case bool():
            return "yes" if value else "no"
        case int() | float() if unit == "s" and 0 < value < 1:
            return f"{value * MS_PER_S:.12g} ms"
        case float():
            return f"{value:.12g} {unit}".rstrip()
        case int():
            return f"{value} {unit}".rstrip()
    return str(value) if value != {} else formats.UNKNOWN
