"""The destination of a run's results: a terminal, a web page or text, and whether a recording is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from servetop.cli.options.declaration import GivenValues
from servetop.cli.options.output_options import OutputOptions

if TYPE_CHECKING:
    from servetop.cli.configuration.web_address import WebAddress
    from servetop.run.process.first_sender import FirstSender


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The destination of a run's results."""

    options: OutputOptions
    no_record: bool = False
    web: WebAddress | None = None
    """The address at which the dashboard is served as a web page; None shows it in this terminal."""
    sender: FirstSender | None = None
    """The first sender of a headless run, if it was started already."""
    given: GivenValues = field(default_factory=dict)
    """The options on the command line; those that have no effect are refused."""
