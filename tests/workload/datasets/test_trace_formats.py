"""Formats of traces leave out what their owners leave out."""

from pathlib import Path

from servetop.core.config import WorkloadConfig
from servetop.workload.datasets.catalogue import trace_of
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.validation import resolve_workload


def test_failed_requests_of_burstgpt_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,Conversation log\n6,ChatGPT,100,0,100,Conversation log\n7,GPT-4,87,12,99,API log\n"
    )
    config = WorkloadConfig(dataset="burstgpt", dataset_path=str(path))
    resolved, replay = resolve_workload(config)
    assert (resolved.trace_rate, replay and replay.requests) == (0.5, 2)
    skipped, rows = SkippedRows(), trace_of(config, seed=1)
    assert rows is not None
    assert [row.output_tokens for row in rows.rows(skipped)] == [18, 12]
    assert skipped.texts() == ["1 row of the dataset was left out: 0 response tokens, a request that failed"]
