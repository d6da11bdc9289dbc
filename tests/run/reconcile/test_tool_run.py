"""A side of a reconciliation is read alike from a result and from its recording, with the server's times if given."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.errors import RecordingError, UsageError
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results
from servetop.run.reconcile.tool_run import ToolRun, read_tool_run
from tests.run.audit.small_records import record

RESULTS = Path(__file__).parents[2] / "corpus" / "results"


def measured(shift: float = 0.0, *, count: int = 5) -> ToolRun:
    times = [0.0, 0.4, 0.5, 1.7, 2.0, 2.2]
    rows = [record(n, sent=at + shift, first=at + 0.3, done=at + 1.0) for n, at in enumerate(times[:count])]
    return ToolRun(
        file="run", tool="servetop", version=None, requests=rows, anchor=ClockAnchor(origin_ns=10**9, wall_epoch_s=0.0),
        times_known=True, closed=False, concurrency=None, reported={},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["vllm-rate.json", "vllm-closed-loop.json", "sglang-rate.jsonl"])
def test_a_result_and_its_recording_are_the_same_run(name: str, tmp_path: Path) -> None:
    target = tmp_path / "run.servetop"
    (result,) = read_results(RESULTS / name)
    record_import(result, RESULTS / name, target)
    one, other = read_tool_run(str(RESULTS / name)), read_tool_run(str(target))
    for field in ("tool", "times_known", "closed", "concurrency", "reported"):
        assert getattr(one, field) == getattr(other, field), field
    first, second = one.compared().rows, other.compared().rows
    for column in ("sent", "ttft", "e2el", "output", "span"):
        assert getattr(first, column) == pytest.approx(getattr(second, column), abs=2e-6, nan_ok=True)


def test_a_load_is_closed_without_a_rate() -> None:
    rate, loop = (read_tool_run(str(RESULTS / f"vllm-{name}.json")) for name in ("rate", "closed-loop"))
    assert (rate.closed, loop.closed, loop.concurrency) == (False, True, 4)


def test_the_servers_times_are_those_of_the_same_requests() -> None:
    client = measured(count=4)
    truth = dataclasses.replace(measured(0.01, count=6), anchor=client.anchor)
    rows = client.compared(truth).rows
    assert rows.server is not None
    assert rows.server.arrived == pytest.approx([0.01, 0.41, 0.51, 1.71])
    assert rows.ttft - rows.server.ttft == pytest.approx([0.01] * 4)
    with pytest.raises(UsageError, match="has fewer requests than run: give the server's account of that run"):
        measured(count=6).compared(measured(count=3))


def test_files_that_cannot_be_compared_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no such recording: nowhere"):
        read_tool_run("nowhere")
    with pytest.raises(UsageError, match="has 4 stages with load: give a recording of one load"):
        read_tool_run("sample")
    one = " ".join((RESULTS / "vllm-rate.json").read_text(encoding="utf-8").split())
    two = tmp_path / "two.json"
    two.write_text(f"{one}\n{one}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has 2 runs: give a file with one"):
        read_tool_run(str(two))
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="not JSON, or cut off"):
        read_tool_run(str(broken))
