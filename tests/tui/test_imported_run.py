"""Replayed, an imported run says of each panel what the file does not have, and no panel shows a 0 in its place."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.clock import ManualClock
from servetop.recordings.library.folder_store import FolderStore
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results
from servetop.tui.app import DashboardApp
from servetop.tui.panels.live.ttft import known_parts
from servetop.tui.state.frame import Frame

RESULT = Path(__file__).parents[1] / "corpus" / "results" / "vllm-rate.json"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_panels_without_data_name_the_reason(size: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    record_import(read_results(RESULT)[0], RESULT, path)
    store = FolderStore()
    try:
        app = DashboardApp(store.open(path), clock=ManualClock())
        async with app.run_test(size=size) as pilot:
            await pilot.press("end")
            await pilot.pause()
            overview = app.export_screenshot().replace("&#160;", " ")
            await pilot.press("6")
            await pilot.pause()
            configuration = app.export_screenshot().replace("&#160;", " ")
            await pilot.press("7")
            await pilot.pause()
            engine = app.export_screenshot().replace("&#160;", " ")
    finally:
        store.close()
    assert "imported " in overview
    assert "· unknown (imported)" in overview or size == (80, 24)
    assert "✓ ok" not in overview
    assert "vllm-rate.json" in configuration
    assert "start_timeout" not in configuration
    assert "not exported by" not in overview + engine
    assert "no metrics from" not in overview + engine
    assert "not in the imported file" in overview
    assert "not in the imported file" in engine


def test_a_file_without_waits_does_not_show_that_there_were_none(
    tmp_path: Path, frame_of: Callable[..., Frame]
) -> None:
    source, parts = RESULT.with_name("aiperf") / "profile_export.jsonl", []
    for number, result in enumerate((source, RESULT)):
        path = tmp_path / f"{number}.servetop"
        record_import(read_results(result)[0], result, path)
        store = FolderStore()
        try:
            parts.append(known_parts(frame_of(store.open(path), 4.0)).client_queue)
        finally:
            store.close()
    assert math.isnan(parts[0])
    assert parts[1] > 0
