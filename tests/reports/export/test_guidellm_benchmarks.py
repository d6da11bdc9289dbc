"""An exported report has a benchmark for each stage, and comes back from an import with the same requests."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.events import RequestStatus
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.export_formats import FORMATS, ExportedPart
from servetop.reports.export.stage_rows import exported_stages, requests_of
from servetop.run.imports.guidellm_report import read_guidellm_report

GOLDEN = Path(__file__).parents[2] / "golden"
RECORDINGS = ["sample", "sample:h200", str(GOLDEN / "dies.servetop")]


def exported(name: str, stage: int | None = None) -> dict[str, Any]:
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        (file,) = FORMATS["guidellm"].files(reader, ExportedPart(stage=stage))
        found: dict[str, Any] = json.loads("".join(file.parts()))
    assert file.name == "benchmarks.json"
    return found


@pytest.mark.parametrize("name", RECORDINGS)
def test_requests_are_the_same_after_an_import(name: str) -> None:
    results = read_guidellm_report(exported(name), Path("nowhere"))
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        stages = exported_stages(reader, None)
        assert len(results) == len(stages)
        for result, stage in zip(results, stages, strict=True):
            wanted = [each for each in requests_of(reader, stage) if each.sent is not None]
            assert len(result.requests) == len(wanted)
            for found, each in zip(result.requests, wanted, strict=True):
                assert (found.status is RequestStatus.OK) == (each.status is RequestStatus.OK)
                assert found.prompt_tokens == each.prompt_tokens
                assert (found.ttft, found.e2el) == pytest.approx((each.ttft, each.e2el), abs=1e-6)
                assert found.sent - found.due == pytest.approx(each.sent - each.due, abs=1e-6)  # type: ignore[operator]
            assert result.load.max_concurrency == stage.stage.max_concurrency


def test_statistics_are_those_of_the_summary() -> None:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        (stage,) = exported_stages(reader, 1)
    (benchmark,) = exported("sample", 1)["benchmarks"]
    totals, metrics = stage.stage.measured.requests, benchmark["metrics"]
    assert metrics["request_totals"] == {"successful": 390, "incomplete": 0, "errored": 0, "total": 390}
    for name, metric in (("time_to_first_token_ms", "ttft"), ("inter_token_latency_ms", "itl")):
        known = totals.latency(metric, "mean")
        assert metrics[name]["successful"]["mean"] == pytest.approx(known, rel=1e-6)
    assert metrics["requests_per_second"]["successful"]["mean"] == pytest.approx(totals.request_throughput)
    assert metrics["text"]["tokens"]["output"]["successful"]["total_sum"] == totals.total_output_tokens
    assert benchmark["config"]["strategy"]["type_"] == "poisson"


def test_failed_requests_keep_their_reason_and_have_an_end() -> None:
    benchmarks = exported(str(GOLDEN / "dies.servetop"))["benchmarks"]
    failed = [row for each in benchmarks for row in each["requests"]["errored"] + each["requests"]["incomplete"]]
    assert failed
    assert all(row["info"]["error"] and row["info"]["timings"]["resolve_end"] for row in failed)
    assert np.all([row["info"]["status"] in ("errored", "cancelled") for row in failed])
