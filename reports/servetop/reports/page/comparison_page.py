"""What a page shows of two recordings: their comparison, and each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.comparison.report_types import ArmComparison, ComparisonReport
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.compare_recordings import compare_recordings
from servetop.reports.comparison.load_comparison import first_objectives
from servetop.reports.page.report_page import ReportPage, report_page


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparisonPage:
    """Two recordings as one page."""

    report: ComparisonReport
    pages: Mapping[str, ReportPage]
    """What is shown of each recording, by its letter: `A`, `B`."""
    objectives: Mapping[str, float]
    """Seconds by metric, with which the goodput of both is compared."""

    @property
    def comparison(self) -> ArmComparison:
        """B compared with A."""
        return self.report.comparisons[0]


def comparison_page(names: tuple[str, str], *, prices: Sequence[str] = (), anyway: bool = False) -> ComparisonPage:
    """Read two recordings by their names, as `compare_recordings`; UsageError or RecordingError, in one line.

    `prices` are those of the servers: one for both, or one for each; `anyway` compares unlike workloads.
    """
    report = compare_recordings(names, prices=prices, anyway=anyway)
    letters = (report.a.letter, report.comparisons[0].b.letter)
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(contextlib.closing(RecordingReader.open(resolve(name)))) for name in names]
        objectives = first_objectives(each.header for each in readers)
        pages = {
            letter: report_page(reader, name=name, prices=_price_of(place, prices), objectives=objectives)
            for place, (letter, reader, name) in enumerate(zip(letters, readers, names, strict=True))
        }
    return ComparisonPage(report=report, pages=pages, objectives=objectives)


def _price_of(place: int, prices: Sequence[str]) -> Sequence[str]:
    """Return the price of one recording: its own, or the only one."""
    return prices[place : place + 1] if len(prices) > 1 else prices
