"""`servetop compare` on recordings of virtual runs: what it compares, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from servetop.analysis.comparison.difference_texts import difference_text, interval_text
from servetop.analysis.comparison.report_types import ComparisonReport
from servetop.cli.inspection.compare import run_compare
from servetop.cli.options.compare_options import CompareOptions
from servetop.core.config import StageConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.reports.check.check_runs import check_recordings, wanted_of
from servetop.reports.check.gate_text import change_text
from servetop.reports.check.gate_text import interval_text as gate_interval
from servetop.reports.comparison.compare_recordings import compare_recordings
from servetop.reports.schema.comparison_schema import comparison_schema
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.judgement.brief_recordings import record_briefly
from tests.reports.schema.test_summary_schema import ROOT, schema_errors

SCHEMA = json.loads((ROOT / "docs" / "schema" / "comparison.json").read_text())
LOAD = StageConfig(request_rate=20.0, duration=15.0)
SLOWER = {"c0": "0.004"}
"""Seconds that the engine's own code takes for each iteration."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    record_briefly(folder / "main.servetop", LOAD, goodput={"ttft": 0.5})
    record_briefly(folder / "slower.servetop", LOAD, settings=SLOWER)
    return folder


def compared(*arguments: Path | str, **options: object) -> CompareOptions:
    return CompareOptions(recordings=tuple(map(str, arguments)), **options)  # type: ignore[arg-type]


def report_of(*arguments: Path | str, **options: object) -> ComparisonReport:
    return compare_recordings(list(map(str, arguments)), **options)  # type: ignore[arg-type]


def refused(*arguments: Path | str, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        report_of(*arguments, **options)
    return str(caught.value)


def test_a_slower_engine_is_worse_and_the_json_is_as_the_schema_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_compare(compared(folder / "main.servetop", folder / "slower.servetop", as_json=True))
    found = json.loads(capsys.readouterr().out)
    assert schema_errors(found, SCHEMA, SCHEMA["$defs"]) == []
    assert code == 0
    (result,) = found["comparisons"]
    assert (result["verdict"], result["b"]["letter"]) == ("worse", "B")
    (stage,) = result["stages"]
    assert stage["same_requests"] is True
    tpot = next(each for each in stage["metrics"] if each["key"] == "mean_tpot_ms")
    assert tpot["verdict"] == "worse"
    assert tpot["b"] / tpot["a"] - 1 == pytest.approx(tpot["difference"])
    assert 0.1 < tpot["low"] < tpot["difference"] < tpot["high"]
    assert "request_goodput" in {each["key"] for each in stage["metrics"]}, "with the objectives of A"


def test_compare_and_check_say_the_same_of_the_same_recordings(tmp_path: Path) -> None:
    """Also of a tail that so few requests do not have: neither calls it infinite."""
    names = [
        str(
            record_briefly(tmp_path / f"{rate:g}.servetop", StageConfig(request_rate=20.0, duration=8.0), settings=cost)
        )
        for rate, cost in ((6, {}), (24, SLOWER))
    ]
    keys = ("p99_ttft_ms", "mean_tpot_ms", "output_throughput")
    (result,) = compare_recordings(names, metrics=keys).comparisons
    wanted = wanted_of(max_regression=[f"{key}=10%" for key in keys])
    gates = {item.gate.limit.metric.key: item.gate for item in check_recordings(names[1:], names[:1], wanted).items
             if item.gate is not None}  # fmt: skip
    for compared_one in result.stages[0].metrics:
        gate = gates[compared_one.key]
        assert gate.shown is not None
        for name in ("a", "b", "difference", "low", "high", "scale", "basis", "unit"):
            assert getattr(gate.shown, name) == getattr(compared_one, name), name
        assert (change_text(gate), gate_interval(gate)) == (difference_text(compared_one), interval_text(compared_one))
    assert gates["p99_ttft_ms"].shown is not None
    assert gates["p99_ttft_ms"].shown.high is None, "a percentile beyond the sample has no bound"


def test_the_schema_in_docs_is_current() -> None:
    assert comparison_schema() == SCHEMA, "run: make schema"


def test_text_and_markdown_begin_with_what_was_compared_and_with_the_result(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = (folder / "main.servetop", folder / "slower.servetop")
    run_compare(compared(*names))
    text = capsys.readouterr().out
    assert text.startswith("A  main · sim")
    assert "B is worse: " in text
    run_compare(compared(*names, markdown=True))
    assert capsys.readouterr().out.startswith("**B is worse: ")


def test_a_folder_and_a_list_are_several_starts_of_one_configuration(folder: Path, tmp_path: Path) -> None:
    for seed in (2, 3):
        record_briefly(tmp_path / f"b-{seed}.servetop", LOAD, seed=seed)
    report = report_of(f"{folder / 'main.servetop'},{folder / 'slower.servetop'}", tmp_path)
    assert (report.a.starts, report.comparisons[0].b.starts) == (2, 2)
    assert report.comparisons[0].b.seeds == (2, 3)
    assert report.comparisons[0].stages[0].starts_b == 2


def test_only_the_metrics_asked_for_are_compared_with_the_margins_given(folder: Path) -> None:
    report = report_of(
        folder / "main.servetop",
        folder / "slower.servetop",
        metrics=("median_ttft_ms", "output_throughput"),
        margins={"output_throughput": 0.3},
    )
    metrics = report.comparisons[0].stages[0].metrics
    assert [each.key for each in metrics] == ["p50_ttft_ms", "output_throughput"]
    assert metrics[1].margin == 0.3


def test_unlike_workloads_are_refused_with_the_key_and_both_values_unless_anyway(folder: Path, tmp_path: Path) -> None:
    other = record_briefly(tmp_path / "longer.servetop", LOAD, input_len=64)
    assert refused(folder / "main.servetop", other) == (
        "A and B have different workloads: workload.input_len is 32 and 64: compare equal workloads, or give --anyway"
    )
    (result,) = report_of(folder / "main.servetop", other, anyway=True).comparisons
    assert any("workload.input_len is 32 and 64" in warning for warning in result.warnings)
    assert [each.key for each in result.differences if each.kind == "workload"] == ["workload.input_len"]


def test_runs_without_a_load_in_common_are_refused_with_their_loads(folder: Path, tmp_path: Path) -> None:
    other = record_briefly(tmp_path / "other.servetop", StageConfig(request_rate=30.0, duration=5.0))
    assert refused(folder / "main.servetop", other) == (
        "no load in common: A has 20 req/s; B has 30 req/s: compare runs with equal stages"
    )


def test_stages_without_a_counterpart_are_listed(folder: Path, tmp_path: Path) -> None:
    other = record_briefly(tmp_path / "other.servetop", LOAD, StageConfig(request_rate=30.0, duration=5.0))
    (result,) = report_of(folder / "main.servetop", other).comparisons
    assert (result.only_a, result.only_b) == ((), ("30 req/s",))


def test_the_same_recording_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.servetop"
    link.symlink_to(folder / "main.servetop")
    assert "link.servetop is given twice" in refused(folder / "main.servetop", link)


def test_a_run_without_a_success_and_one_with_a_single_request_are_refused(folder: Path, tmp_path: Path) -> None:
    failing = record_briefly(
        tmp_path / "failing.servetop", LOAD, outages=(Outage(kind=OutageKind.HTTP_500, start=0.0),)
    )
    assert "none of its" in refused(folder / "main.servetop", failing)
    single = record_briefly(tmp_path / "single.servetop", StageConfig(request_rate=20.0, num_prompts=1))
    assert refused(folder / "main.servetop", single) == (
        "too few requests in every common stage: a comparison needs 16 in one of them"
    )


def test_failed_requests_are_a_warning(folder: Path, tmp_path: Path) -> None:
    outage = Outage(kind=OutageKind.HTTP_500, start=0.0, share=0.2)
    failing = record_briefly(tmp_path / "failing.servetop", LOAD, outages=(outage,))
    (result,) = report_of(folder / "main.servetop", failing).comparisons
    assert [warning for warning in result.warnings if "requests failed; latencies omit them" in warning]


def test_recordings_of_an_older_format_are_compared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copy(ROOT / "tests" / "golden" / "vllm.servetop", tmp_path / f"{name}.servetop")
    (result,) = report_of(tmp_path / "one.servetop", tmp_path / "two.servetop").comparisons
    assert {each.verdict for stage in result.stages for each in stage.metrics} <= {"no difference seen", "cannot tell"}
    assert {each.difference for stage in result.stages for each in stage.metrics} == {0.0}
    with pytest.raises(RecordingError, match="no such recording"):
        report_of(tmp_path / "one.servetop", tmp_path / "absent.servetop")


def test_unknown_metrics_a_single_recording_and_two_formats_are_refused(folder: Path) -> None:
    names = (folder / "main.servetop", folder / "slower.servetop")
    assert refused(*names, metrics=("max_ttft_ms",)).startswith("--metric max_ttft_ms: use one of output_throughput, ")
    assert refused(*names, margins={"nothing": 0.1}).startswith("--margin nothing: use one of ")
    assert "two configurations or more" in refused(names[0])
    with pytest.raises(UsageError, match="exclude each other"):
        run_compare(compared(*names, as_json=True, markdown=True))


def test_prices_add_the_cost_per_token_and_the_price_at_which_it_would_be_equal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = (folder / "main.servetop", folder / "slower.servetop")
    report = report_of(*names, prices=("2/h", "3/h"))
    (result,) = report.comparisons
    assert (report.a.price_per_hour, result.b.price_per_hour) == (2.0, 3.0)
    cost = result.stages[0].metric("cost_per_million_tokens")
    assert cost is not None
    assert cost.difference is not None
    assert cost.verdict == "worse"
    assert cost.difference == pytest.approx(0.5, rel=0.1), "the same load costs in proportion to the price"
    (equal,) = result.break_even
    assert equal.per_hour == pytest.approx(3 / (1 + cost.difference))
    assert equal.low < equal.per_hour < (equal.high or 0)
    run_compare(compared(*names, price=("2/h", "3/h")))
    assert "B costs as much per token as A at " in capsys.readouterr().out


def test_one_price_is_that_of_all_and_without_prices_there_is_no_cost(folder: Path) -> None:
    names = (folder / "main.servetop", folder / "slower.servetop")
    report = report_of(*names, prices=("2/h",))
    assert (report.a.price_per_hour, report.comparisons[0].b.price_per_hour) == (2.0, 2.0)
    without = report_of(*names).comparisons[0]
    assert without.break_even == ()
    assert "cost_per_million_tokens" not in without.stages[0].not_measured


@pytest.mark.parametrize(
    ("prices", "complaint"),
    [
        (("2/h", "3/h", "4/h"), "3 prices: give one for all, or one for each configuration"),
        (("2/h", "1/Mtok"), "compare needs prices per hour"),
        (("$2/h", "3€/h"), "in the same currency"),
        (("cheap",), "--price cheap: use 2.5/h for all that serves"),
    ],
)
def test_prices_that_do_not_fit_the_configurations_are_refused(
    folder: Path, prices: tuple[str, ...], complaint: str
) -> None:
    assert complaint in refused(folder / "main.servetop", folder / "slower.servetop", prices=prices)


def test_recorded_prices_are_used_and_have_to_be_in_one_currency(tmp_path: Path) -> None:
    names = [tmp_path / f"{name}.servetop" for name in ("a", "b", "c")]
    for path, price in zip(names, ("$2/h", "$3/h", "3 EUR/h"), strict=True):
        record_briefly(path, LOAD, prices=(price,))
    report = report_of(*names[:2])
    assert (report.a.price_per_hour, report.comparisons[0].b.price_per_hour) == (2.0, 3.0)
    assert "the recorded prices $2/h and 3 EUR/h have different currencies: give --price" in refused(*names)
    assert report_of(*names, prices=("2/h",)).a.price_per_hour == 2.0
