"""Send times that a result lacks follow from its latencies only where the load leaves no choice."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from servetop.run.imports.derived_times import derived_starts
from servetop.run.imports.imported_result import ImportedLoad
from servetop.run.imports.vllm_bench import read_vllm_result

RESULT = Path(__file__).parents[2] / "corpus" / "results" / "vllm-closed-loop.json"


def test_a_closed_loop_sends_when_the_first_request_ends() -> None:
    load = ImportedLoad(max_concurrency=2)
    assert derived_starts([3.0, 1.0, 1.0, 2.0], load, duration=4.0) == [0.0, 0.0, 1.0, 2.0]
    assert derived_starts([3.0, 1.0], ImportedLoad(), duration=3.01) == [0.0, 0.0]


def test_the_derived_times_of_a_real_run_are_the_measured_ones_but_for_the_work_of_the_client() -> None:
    document = json.loads(RESULT.read_text(encoding="utf-8"))
    measured = read_vllm_result(document)
    derived = read_vllm_result({key: value for key, value in document.items() if key != "start_times"})
    assert derived.remarks == ["the file has no start_times: they are derived from the latencies and the concurrency"]
    for left, right in zip(derived.requests, measured.requests, strict=True):
        assert left.sent == pytest.approx(right.sent, abs=0.05)
        assert [left.ttft, left.e2el] == pytest.approx([right.ttft, right.e2el])


@pytest.mark.parametrize(
    ("latencies", "load", "duration", "reason"),
    [
        ([1.0, 2.0], ImportedLoad(request_rate=4.0), 2.0, "arrivals at 4 req/s are random"),
        ([1.0, None], ImportedLoad(max_concurrency=1), 2.0, "failed requests have no latency"),
        ([1.0, 2.0], ImportedLoad(max_concurrency=1), 2.0, "its latencies contradict its duration"),
        ([1.0, 2.0], ImportedLoad(), None, "its latencies contradict its duration"),
        ([1.0, 2.0], ImportedLoad(), math.nan, "its latencies contradict its duration"),
    ],
)
def test_other_times_cannot_be_known(
    latencies: list[float | None], load: ImportedLoad, duration: float | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        derived_starts(latencies, load, duration=duration)
