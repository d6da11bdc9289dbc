"""The types of plug-ins: a package offers objects of them as entry points, see docs/how-to/write-a-plug-in.md."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from servetop.core.arrays import FloatArray, IntArray
from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.reports.plug_ins.exporters import Exporter
from servetop.reports.plug_ins.recording_view import RecordingView
from servetop.reports.plug_ins.report_sections import ReportSection, SectionChart, SectionTable
from servetop.run.imports.imported_result import ImportedLoad, ImportedResult
from servetop.run.imports.importers import Importer
from servetop.workload.datasets.plug_in_texts import DatasetPrompt, PromptDataset

__all__ = [
    "DatasetPrompt",
    "Exporter",
    "ImportedLoad",
    "ImportedResult",
    "Importer",
    "PromptDataset",
    "RecordingView",
    "ReportSection",
    "RequestRecord",
    "RequestStatus",
    "SectionChart",
    "SectionTable",
    "UsageError",
    "chunk_times",
    "chunk_tokens",
]


def chunk_times(seconds: Iterable[float]) -> FloatArray:
    """Return the arrivals of the chunks of a request: seconds since the first request was due, ascending."""
    return np.fromiter(seconds, dtype=np.float64)


def chunk_tokens(counts: Iterable[int]) -> IntArray:
    """Return the tokens that each chunk of a request carried."""
    return np.fromiter(counts, dtype=np.int64)
