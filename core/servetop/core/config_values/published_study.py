"""What a published study measured in the cells of a sweep, which its recording keeps beside the measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """The published figures of one cell; None for a figure that was not published."""

    max_num_seqs: int | None = None
    """None if the sweep leaves it to the engine."""
    request_rate: float
    max_concurrency: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The settings of the cell besides batch size and load, by name."""
    output_throughput: float | None = None
    """Tokens/s."""
    preemptions: float | None = None
    suspect: bool = False
    """Whether the figures contradict those of other cells, or the offered load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedStudy:
    """A table of a published study, as far as a sweep measures the same cells."""

    source: str = ""
    """Where it is published, such as `Run:ai whitepaper, Table 4`."""
    set_up: str = ""
    """The engine, the model and the machine that it was measured on."""
    cells: tuple[PublishedCell, ...] = ()
