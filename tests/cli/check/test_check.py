"""`servetop check` on recordings of virtual runs, in this process."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from servetop.cli.main import main
from servetop.core.config import StageConfig
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.cli.check.checking import STAGES, WORKLOAD, Check, outcomes, recorded
from tests.recordings.rows import change
from tests.reports.schema.comparison_errors import comparison_errors

LIMITS = ("--max-regression", "mean_tpot_ms=10%", "--max-regression", "output_throughput=5%")


@pytest.fixture(scope="module")
def baseline(folder: Path) -> str:
    return recorded(folder / "main.servetop")


@pytest.fixture(scope="module")
def equal(folder: Path) -> str:
    return recorded(folder / "equal.servetop")


@pytest.fixture(scope="module")
def slower(folder: Path) -> str:
    """Every iteration takes 40 % longer, or more."""
    return recorded(folder / "slower.servetop", c0=0.02)


def test_an_equal_run_keeps_every_limit(check: Check, baseline: str, equal: str) -> None:
    code, found, _ = check(equal, "--baseline", baseline, *LIMITS)
    assert (code, found["exit_code"], found["error"], outcomes(found)) == (0, 0, None, ["kept"] * 4)
    assert [item["load"] for item in found["items"]][:2] == ["6 req/s (stage 0)", "12 req/s (stage 1)"]


def test_a_slower_engine_is_a_regression(check: Check, baseline: str, slower: str) -> None:
    code, found, last = check(slower, "--baseline", baseline, "--max-regression", "mean_tpot_ms=10%")
    assert (code, outcomes(found)) == (99, ["regression", "regression"])
    assert last.startswith("servetop: regression: mean_tpot_ms=10% at 6 req/s (stage 0): +")
    assert comparison_errors(found, "check") == []
    one = found["items"][0]["measured"]
    assert (one["scale"], one["verdict"], one["margin"]) == ("relative", "worse", 0.10)
    assert 0.10 < one["low"] < one["difference"] < one["high"]


@pytest.mark.integration
def test_a_limit_of_one_stage_leaves_the_others(check: Check, baseline: str, slower: str) -> None:
    code, found, _ = check(slower, "--baseline", baseline, "--max-regression", "stages[1].mean_tpot_ms=10%")
    assert (code, [item["load"] for item in found["items"]][:1]) == (99, ["12 req/s (stage 1)"])
    code, found, last = check(slower, "--baseline", baseline, "--max-regression", "stages[2].mean_tpot_ms=10%")
    assert (code, last.rpartition(": ")[2]) == (2, "its stages with load are 0, 1")


@pytest.mark.integration
def test_a_broken_rule_on_either_side_makes_the_limit_undecidable(check: Check, baseline: str, folder: Path) -> None:
    outage = Outage(kind=OutageKind.HTTP_500, start=0.0, until=11.0, share=0.4)
    failing = recorded(folder / "failing.servetop", outages=(outage,))
    limit = ("--max-regression", "mean_tpot_ms=10%")
    for words, side in (((failing, "--baseline", baseline), "run"), ((baseline, "--baseline", failing), "baseline")):
        code, found, _ = check(*words, *limit)
        assert (code, outcomes(found)) == (98, ["cannot tell", "kept"])
        assert f"failures is broken in the {side}: " in found["items"][0]["text"]
        assert any("other cause of a difference: failures: " in each for each in found["warnings"])
    code, found, _ = check(failing, "--baseline", baseline, *limit, "--ignore", "failures")
    assert (code, outcomes(found)) == (0, ["kept", "kept"])


@pytest.mark.integration
def test_thresholds_need_no_baseline(check: Check, baseline: str) -> None:
    words = ("--threshold", "stages[*].mean_ttft_ms<1000", "--threshold", "stages[1].completed>=1000")
    code, found, last = check(baseline, *words)
    assert (code, outcomes(found, "threshold")) == (99, ["kept", "kept", "not met"])
    assert last.startswith("servetop: not met: stages[1].completed>=1000 at 12 req/s (stage 1): it is 1")


@pytest.mark.integration
def test_the_rules_alone_decide_without_gates(check: Check, baseline: str) -> None:
    code, found, last = check(baseline)
    assert (code, last.split(": ")[1:3]) == (99, ["broken", "p99-samples at 6 req/s (stage 0)"])
    code, found, _ = check(baseline, "--rule", "littles-law", "--rule", "failures")
    assert (code, {item["name"]: item["outcome"] for item in found["items"]}) == (
        0,
        {"failures": "kept", "littles-law": "kept"},
    )
    code, found, last = check(baseline, "--rule", "prefix-cache")
    assert (code, last) == (98, "servetop: cannot tell: no rule could be applied")


@pytest.mark.integration
def test_unlike_workloads_are_refused_with_the_key(check: Check, baseline: str, folder: Path) -> None:
    longer = recorded(folder / "longer.servetop", workload=replace(WORKLOAD, output_len=64))
    code, _, last = check(longer, "--baseline", baseline, *LIMITS)
    assert code == 2
    assert "different workloads: workload.output_len is 32 and 64; give --anyway" in last
    code, found, _ = check(longer, "--baseline", baseline, *LIMITS, "--anyway")
    assert code != 2
    assert "workload.output_len is 32 and 64" in found["warnings"][0]


@pytest.mark.integration
def test_loads_without_a_counterpart_are_listed_or_refused(check: Check, baseline: str, folder: Path) -> None:
    first, other = (recorded(folder / f"{name}.servetop", stages=part) for name, part in _PARTS.items())
    code, found, _ = check(first, "--baseline", baseline, *LIMITS)
    assert (code, found["without_counterpart"]) == (0, ["12 req/s (only in the baseline)"])
    code, _, last = check(other, "--baseline", first, *LIMITS)
    assert (code, last) == (
        2,
        "servetop: no load is on both sides: the baseline has 6 req/s; the run has 3 req/s",
    )


_PARTS = {"first": STAGES[:1], "other": (StageConfig(request_rate=3.0, duration=12.0),)}


@pytest.mark.integration
def test_the_same_run_is_a_warning_as_baseline_and_refused_as_a_second_start(
    check: Check, baseline: str, folder: Path
) -> None:
    copy = str(shutil.copy(baseline, folder / "copy.servetop"))
    code, found, _ = check(copy, "--baseline", baseline, *LIMITS)
    assert (code, found["warnings"]) == (0, [f"{copy} and {baseline} are the same run"])
    code, _, last = check(copy, baseline)
    assert (code, last) == (2, f"servetop: {baseline} and {copy} are the same run: a start counts only once")


@pytest.mark.integration
def test_a_run_still_being_written_is_refused(check: Check, baseline: str, folder: Path) -> None:
    live = Path(shutil.copy(baseline, folder / "live.servetop"))
    change(live, "UPDATE run SET end_at = NULL")  # and its writer is this process
    for words in ((baseline, "--baseline", str(live), *LIMITS), (str(live),)):
        code, _, last = check(*words)
        assert code == 2
        assert last.startswith(f"servetop: {live} is still being written: wait for the end of its run")


@pytest.mark.integration
def test_a_damaged_recording_is_refused(check: Check, baseline: str, folder: Path) -> None:
    torn = folder / "torn.servetop"
    torn.write_bytes(Path(baseline).read_bytes()[:40_000])
    code, _, last = check(baseline, "--baseline", str(torn), *LIMITS)
    assert (code, "torn.servetop" in last) == (1, True)


@pytest.mark.integration
def test_what_is_not_a_recording_is_refused(check: Check, baseline: str, folder: Path) -> None:
    page = folder / "page.servetop"
    page.write_text("<html>")
    assert check(baseline, "--baseline", str(page), *LIMITS)[0] == 2


@pytest.mark.integration
def test_an_older_recording_is_a_baseline(check: Check, baseline: str, equal: str, folder: Path) -> None:
    older = Path(shutil.copy(baseline, folder / "older.servetop"))
    change(older, "ALTER TABLE run DROP COLUMN manifest", "PRAGMA user_version = 1007")
    code, found, _ = check(equal, "--baseline", str(older), *LIMITS)
    assert (code, outcomes(found)) == (0, ["kept"] * 4)


@pytest.mark.integration
def test_without_engine_metrics_only_the_client_is_judged(
    check: Check, baseline: str, equal: str, folder: Path
) -> None:
    unseen = Path(shutil.copy(equal, folder / "unseen.servetop"))
    change(unseen, "DELETE FROM engine_sample")
    code, found, _ = check(str(unseen), "--baseline", baseline, *LIMITS, "--max-regression", "mean_kv_usage=0.1")
    of_limits = [item for item in found["items"] if item["kind"] == "max-regression"]
    texts = {item["text"] for item in of_limits if item["measured"]["key"] == "mean_kv_usage"}
    assert (code, texts) == (98, {"not measured in the run"})
    assert comparison_errors(found, "check") == []
    rules = {item["name"]: item["outcome"] for item in check(str(unseen))[1]["items"]}
    assert (rules["littles-law"], rules["token-counts"]) == ("not applicable", "not applicable")


@pytest.mark.integration
def test_a_run_whose_requests_all_failed_or_of_one_request_cannot_tell(
    check: Check, baseline: str, folder: Path
) -> None:
    outage = Outage(kind=OutageKind.HTTP_500, start=0.0)
    failed = recorded(folder / "failed.servetop", outages=(outage,))
    one = recorded(folder / "one.servetop", stages=(StageConfig(request_rate=6.0, num_prompts=1),))
    for path in (failed, one):
        code, found, _ = check(path, "--baseline", baseline, *LIMITS)
        assert (code, set(outcomes(found))) == (98, {"cannot tell"})


@pytest.mark.integration
def test_several_starts_are_compared_by_their_spread(check: Check, folder: Path) -> None:
    arms = [[recorded(folder / f"{name}{seed}.servetop", seed=seed) for seed in (1, 2, 3)] for name in ("a", "b")]
    baselines = [word for path in arms[0] for word in ("--baseline", path)]
    code, found, _ = check(*arms[1], *baselines, *LIMITS)
    bases = {item["measured"]["basis"] for item in found["items"] if item["kind"] == "max-regression"}
    assert (code, bases) == (0, {"paired starts"})
    alone = folder / "alone"
    alone.mkdir()
    for path in arms[0]:
        shutil.move(path, alone)
    assert outcomes(check(*arms[1], "--baseline", str(alone), *LIMITS)[1]) == outcomes(found)


@pytest.mark.integration
def test_reports_are_written_beside_the_text(
    baseline: str, slower: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, junit = tmp_path / "summary.md", tmp_path / "junit.xml"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    words = ("--baseline", baseline, "--max-regression", "mean_tpot_ms=10%", "--junit", str(junit), "--github")
    assert main(["check", slower, *words]) == 99
    assert summary.read_text().startswith("before\n### servetop check: 2 checked: 2 regression\n")
    assert ElementTree.fromstring(junit.read_bytes()).attrib["failures"] == "2"
    assert capsys.readouterr().out.count("\n::error title=servetop%3A mean_tpot_ms=10%25 at ") == 2


@pytest.mark.integration
def test_a_report_that_cannot_be_written_is_an_error(
    baseline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "none" / "junit.xml"
    assert main(["check", baseline, "--rule", "failures", "--junit", str(junit)]) == 1
    assert capsys.readouterr().err == f"servetop: cannot write {junit} (no such file or directory)\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--baseline", "main"), "give --max-regression too: a comparison needs both"),
        (("--max-regression", "output_throughput=2%"), "give --baseline too: a comparison needs both"),
        (("--threshold", "p99_ttft<1"), "unknown summary key 'p99_ttft'"),
        (("--rule", "x"), "'x' is not a rule"),
        ((), "no such recording: pr.servetop"),
        (("--github",), "--json and --github exclude each other"),
        (("--baseline", "a", "--max-regression", "p99_ttft_ms=1%", "--max-regression", "p99_ttft_ms=2%"), "two limits"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(check: Check, words: tuple[str, ...], message: str) -> None:
    code, found, last = check("pr.servetop", *words)
    assert (code, found["exit_code"]) == (2, 2)
    assert message in last
