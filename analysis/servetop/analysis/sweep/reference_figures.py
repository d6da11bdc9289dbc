"""Figures of a sweep's cells from elsewhere, beside the measured ones: simulated, and published by a study."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from servetop.analysis.field_metadata import OMITTED
from servetop.analysis.sweep.sweep_cell import CellReference, SweepCell
from servetop.core.config import RunConfig
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.config_values.published_study import PublishedCell

_Reference = TypeVar("_Reference", PredictedCell, PublishedCell)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSource:
    """Where the published figures of a sweep come from."""

    source: str
    """Such as `Run:ai whitepaper, Table 4`."""
    set_up: str
    """The engine, the model and the machine."""
    mean_ratio: float | None = field(default=None, metadata=OMITTED)
    """Geometric mean of measured / published output throughput, without suspect cells; None without any."""


def with_references(cells: Sequence[SweepCell], config: RunConfig) -> list[SweepCell]:
    """Return the cells with what their recording has of them from elsewhere."""
    study = () if config.published is None else config.published.cells
    sized = sets_batch_sizes(config)
    return [
        dataclasses.replace(
            cell,
            published=_reference(cell, _of_cell(cell, study, sized=sized)),
            simulated=_reference(cell, _of_cell(cell, config.predicted, sized=sized)),
        )
        for cell in cells
    ]


def published_source(cells: Sequence[SweepCell], config: RunConfig) -> PublishedSource | None:
    """Return the source of the published figures; None for a sweep without any."""
    if config.published is None:
        return None
    known = [each.published for each in cells if each.published is not None and not each.published.suspect]
    logs = [math.log(each.ratio) for each in known if each.ratio]
    mean = math.exp(sum(logs) / len(logs)) if logs else None
    return PublishedSource(source=config.published.source, set_up=config.published.set_up, mean_ratio=mean)


def sets_batch_sizes(config: RunConfig) -> bool:
    """Whether a sweep sets batch sizes; if it leaves them to the engine, those of predictions need not be the same."""
    return any(stage.max_num_seqs is not None for stage in config.stages if not stage.warmup)


def _of_cell(cell: SweepCell, references: Iterable[_Reference], *, sized: bool) -> _Reference | None:
    rate = math.inf if cell.request_rate is None else cell.request_rate
    for each in references:
        alike = (each.request_rate, each.max_concurrency) == (rate, cell.max_concurrency)
        of_size = not sized or each.max_num_seqs in (None, cell.max_num_seqs)
        if alike and of_size and settings_text(each.settings) == cell.settings:
            return each
    return None


def _reference(cell: SweepCell, found: PredictedCell | PublishedCell | None) -> CellReference | None:
    if found is None:
        return None
    rate, measured = found.output_throughput, cell.output_throughput
    return CellReference(
        output_throughput=rate,
        preemptions=found.preemptions,
        ratio=measured / rate if measured is not None and rate else None,
        suspect=True if isinstance(found, PublishedCell) and found.suspect else None,
    )
