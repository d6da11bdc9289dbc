"""What is said before the figures of a comparison, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.manifest.manifest_diff import manifest_differences
from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.reports.comparison.measured_arm import MeasuredArm, MeasuredRun
from servetop.reports.comparison.preconditions import (
    check_measured,
    check_same_workload,
    unlike_keys,
    warnings_of,
)
from tests.analysis.measured_arms import CONFIG, FACTS, arm, run
from tests.analysis.measured_conditions import conditions, lengths


def test_an_arm_is_described_by_its_labels_or_names_and_sums() -> None:
    labelled = replace(CONFIG, label="nightly", seed=2)
    found = arm("A", run("a-1", conditions=conditions(failed=3)), run("a-2", labelled)).summary()
    assert (found.name, found.seeds, found.starts) == ("a-1 and 1 more", (1, 2), 2)
    assert (found.seconds, found.requests, found.failed) == (120.0, 800, 3)
    assert (found.engine, found.engine_version, found.model) == ("vllm", "0.9.1", "llama-2-7b")
    assert found.date == "2025-11-23T18:06:00+00:00"
    assert arm("B", run("b", labelled)).summary().name == "nightly"


def headers(*runs: MeasuredRun) -> list[RunHeader]:
    return [each.header for each in runs]


def test_all_keys_that_make_workloads_unlike_are_named_the_first_with_its_values() -> None:
    other = replace(CONFIG, workload=replace(CONFIG.workload, input_len=256, output_len=32))
    with pytest.raises(UsageError) as caught:
        check_same_workload(headers(run("a")), {"B": headers(run("a2")), "C": headers(run("b"), run("c", other))})
    assert str(caught.value) == (
        "A and C have different workloads: workload.input_len is 128 and 256 (workload.output_len differs too): "
        "compare equal workloads, or give --anyway"
    )


def test_other_seeds_and_stages_are_like_workloads() -> None:
    other = replace(CONFIG, seed=2, stages=(StageConfig(request_rate=9.0, duration=5.0),))
    assert unlike_keys(manifest_differences(run("a").header, run("b", other).header)) == ()
    check_same_workload(headers(run("a")), {"B": headers(run("b", other))})


def test_a_run_without_requests_is_refused() -> None:
    with pytest.raises(UsageError, match=r"runs/a.servetop has no finished request"):
        check_measured(arm("A", run("a", conditions=conditions(requests=0, lengths=lengths([])))))
    with pytest.raises(UsageError, match=r"none of its 400 requests succeeded: servetop summary shows the reasons"):
        check_measured(arm("A", run("a", conditions=conditions(failed=400, lengths=lengths([])))))


def warned(a: MeasuredArm, b: MeasuredArm) -> tuple[str, ...]:
    return warnings_of(a, b, manifest_differences(a.first.header, b.first.header))


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"running": True, "end": None}, "B (b) is still running: what it has measured so far is compared"),
        ({"end": None}, "B (b) ended without notice: what was recorded is compared"),
        ({"conditions": conditions(failed=5)}, "B (b): 5 of 400 requests failed; latencies omit them"),
        ({"damage": "b is damaged"}, "b is damaged"),
        ({}, None),
    ],
)
def test_what_limits_the_comparison_is_a_warning(fields: dict[str, Any], warning: str | None) -> None:
    found = warned(arm("A", run("a")), arm("B", run("b", **fields)))
    assert found == (() if warning is None else (warning,))


def test_starts_of_different_engines_and_objectives_are_warnings() -> None:
    newer = replace(FACTS, version="0.9.2")
    objectives = replace(CONFIG, goodput={"ttft": 0.5})
    found = warned(arm("A", run("a"), run("a2", facts=newer)), arm("B", run("b", objectives)))
    assert found == (
        "the recordings of A are not of one configuration: engine.version differs",
        "the runs have different objectives: goodput is computed with those of the first run that has any",
    )
