"""Each tool's definitions give what the tool itself wrote, from the requests of its result."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.analysis.reconciliation.definitions import COMMON, ReconciledMetric, definition_of
from servetop.run.imports.result_file import read_results
from tests.analysis.reconciliation.synthetic_runs import PlantedRun, planted

RESULTS = Path(__file__).parents[2] / "corpus" / "results"


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("vllm-rate.json", 6),
        ("vllm-closed-loop.json", 6),
        ("sglang-rate.jsonl", 6),
        ("guidellm-poisson.json", 3),
        ("aiperf/profile_export.jsonl", 5),
    ],
)
def test_printed_figures_follow_from_the_requests(name: str, least: int) -> None:
    (result,) = read_results(RESULTS / name)
    rows = ClientRows.of(result.requests, duration=result.reported.get("duration"))
    written = [each for each in ReconciledMetric if each in result.reported]
    assert len(written) >= least
    for metric in written:
        scale = 1e3 if metric.endswith("_ms") else 1.0
        computed = definition_of(result.tool, metric).compute(rows) * scale
        assert computed == pytest.approx(result.reported[metric], rel=2e-3), metric


def test_definitions_differ_where_a_chunk_has_several_tokens() -> None:
    rows = planted(PlantedRun(seed=1, tokens_a_chunk=2)).rows
    ours = COMMON[ReconciledMetric.ITL].compute(rows)
    assert definition_of("vLLM bench", ReconciledMetric.ITL).compute(rows) == pytest.approx(2 * ours)
    assert definition_of("another tool", ReconciledMetric.ITL) is COMMON[ReconciledMetric.ITL]
    assert definition_of("LLMPerf", ReconciledMetric.ITL).compute(rows) > ours


def test_a_run_without_requests_that_count_has_no_figure() -> None:
    rows = planted(PlantedRun(seed=1, count=3)).rows
    none = rows.where(rows.sent < 0)
    for metric in ReconciledMetric:
        for tool in ("servetop", "vLLM bench", "guidellm", "LLMPerf", "AIPerf"):
            assert definition_of(tool, metric).compute(none) != definition_of(tool, metric).compute(none)
