"""What a plug-in reads of a recording is what other commands print of it."""

from __future__ import annotations

import contextlib

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.plug_ins.recording_view import RecordingView
from servetop.reports.summary.summary import run_summary


def test_tables_and_figures_are_those_of_the_recording() -> None:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        view = RecordingView(reader)
        assert (view.path, view.config, view.damage) == (reader.path, reader.header.config, None)
        assert len(view.requests()) == reader.request_count()
        assert len(view.ticks()) == len(reader.ticks())
        assert [len(each) > 0 for each in (view.stages(), view.engine(), view.gpu())] == [True, True, False]
        assert view.summary().requests == run_summary(reader).requests
        assert view.story().headline
