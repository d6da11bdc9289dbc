"""The configuration panel: the recording's header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from textual.reactive import reactive

from servetop.core.config import PredictedCell, to_data
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import TextRow, fitted
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_NAME = 34
"""Cells of a setting's name."""


class ConfigPanel(Panel):
    """One setting per row, starting at row `top`."""

    top: reactive[int] = reactive(0)

    def title(self, frame: Frame) -> Sequence[TextRow]:  # noqa: ARG002
        return [[("Configuration", "title")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return [fitted(row, width) for row in shown_rows(frame, width)[self.top : self.top + height]]


def shown_rows(frame: Frame, width: int) -> list[TextRow]:
    """The table of replicas at this time, if there are several; then the settings."""
    replicas = frame.replicas(width)
    return [*([*replicas, []] if replicas else []), *config_rows(frame.header)]


def _of_one_server(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that only several servers have, if there is one, and without the table of screen 7."""
    return {key: value for key, value in settings.items() if (value or key not in _OF_SEVERAL) and key != "exported"}


_OF_SEVERAL = ("more_urls", "front_door", "replica_urls")
_OWN_SECTIONS = ("engine", "workload", "stages", "predicted")


def config_rows(header: RunHeader) -> list[TextRow]:
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
        "versions": header.versions,
        "host": header.host,
    }
    rows: list[TextRow] = []
    for name, settings in sections.items():
        if not settings and name.startswith("predicted"):
            continue
        rows.append([(name, "title")])
        rows += [
            [(f"  {sanitize_line(key):<{_NAME - 3}} ", "muted"), (sanitize_line(value), "")]
            for key, value in _flat(settings)
        ]
        rows.append([])
    return rows[:-1]


def _predicted(cell: PredictedCell) -> tuple[str, str]:
    batch, rate = formats.exact(cell.max_num_seqs), formats.number(cell.request_rate)
    return f"batch {batch}, {rate} req/s", formats.count(cell.output_throughput)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{key}", ", ".join(map(_value, value)) or formats.UNKNOWN
        else:
            yield f"{prefix}{key}", _value(value)


def _value(value: object) -> str:
    """A setting in a reader's words: `yes`, `1800`, `–` for none."""
    match value:
        case None | "":
            return formats.UNKNOWN
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.12g}"
    return str(value) if value != {} else formats.UNKNOWN
