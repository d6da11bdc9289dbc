"""The cells of a sweep that were not measured because their row had ended."""

from __future__ import annotations

from servetop.analysis.summary.summary_types import SkippedSummary
from servetop.recordings.read.reader import RecordingReader


def skipped_cells(reader: RecordingReader) -> tuple[SkippedSummary, ...]:
    """Return them in the order in which they were skipped; empty for other runs."""
    return tuple(
        SkippedSummary(
            label=each.label,
            repeat=each.repeat,
            request_rate=each.request_rate,
            max_concurrency=each.max_concurrency,
            max_num_seqs=each.max_num_seqs,
            settings=each.settings,
            stage=each.stage,
            reason=each.reason,
        )
        for each in reader.skipped_cells()
    )
