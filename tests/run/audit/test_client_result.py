"""Results of all tools, and recordings, become the requests that a client says that it sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from servetop.recordings.library.catalog import resolve
from servetop.run.audit.client_result import read_client_result

RESULTS = Path(__file__).parents[2] / "corpus" / "results"


@pytest.mark.parametrize(
    ("name", "tool", "timed", "remark"),
    [
        ("vllm-rate.json", "vLLM bench", True, ""),
        ("sglang-rate.jsonl", "SGLang bench_serving", False, "no times of sending"),
        ("guidellm-poisson.json", "guidellm", True, "the first one included; TPOT here excludes it"),
        ("llmperf/individual_together_13b.json", "LLMPerf", False, "includes the time to the first token"),
        ("inference_perf/per_request_lifecycle_metrics.json", "inference-perf", True, "its own tokenizer"),
        ("aiperf/profile_export.jsonl", "AIPerf", True, "mean of each request"),
    ],
)
def test_each_tool_is_read_with_what_it_defines_otherwise(name: str, tool: str, timed: bool, remark: str) -> None:
    found = read_client_result(RESULTS / name, None, since=0.0)
    assert (found.tool, found.times_known) == (tool, timed)
    assert remark in "; ".join(found.remarks)
    sent = [each.sent for each in found.requests]
    assert len(sent) > 1
    assert sent == sorted(sent, key=lambda at: at or 0.0)
    if timed:
        assert found.anchor.origin_ns or found.anchor.wall_epoch_s


def test_a_recording_is_read_without_its_warm_up() -> None:
    found = read_client_result(resolve("sample"), None, since=0.0)
    assert (found.tool, found.times_known) == ("servetop", True)
    assert len(found.requests) > 100


def test_a_file_that_is_absent_older_or_of_several_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--result .*cannot be read \(no such file or directory\): give the file"):
        read_client_result(tmp_path / "none.json", None, since=0.0)
    old = tmp_path / "old.json"
    old.write_bytes((RESULTS / "vllm-rate.json").read_bytes())
    os.utime(old, (100.0, 100.0))
    with pytest.raises(UsageError, match="is older than this audit"):
        read_client_result(old, None, since=101.0)
    several = tmp_path / "two.json"
    one = (RESULTS / "vllm-rate.json").read_text(encoding="utf-8")
    several.write_text("\n".join([" ".join(one.split())] * 2))
    with pytest.raises(UsageError, match="has 2 runs: let the client write one run into it"):
        read_client_result(several, None, since=0.0)


def test_a_damaged_recording_is_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "run.servetop"
    damaged.write_text("not a recording")
    with pytest.raises(UsageError, match=r"--result .*run\.servetop"):
        read_client_result(damaged, None, since=0.0)
