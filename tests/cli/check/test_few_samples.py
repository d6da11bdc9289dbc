"""`servetop check` on percentiles of too few requests."""

from pathlib import Path

import pytest

from servetop.core.config import StageConfig
from tests.cli.check.checking import Check, outcomes, recorded


@pytest.fixture(scope="module")
def sampled(folder: Path) -> dict[str, str]:
    """Runs by their number of requests, and one of 300 whose engine is slow."""
    counts = {"20": 20, "100": 100, "480": 480, "1500": 1500}
    paths = {
        name: recorded(folder / f"{name}.servetop", stages=(StageConfig(request_rate=12.0, num_prompts=count),))
        for name, count in counts.items()
    }
    few = (StageConfig(request_rate=12.0, num_prompts=300),)
    return {**paths, "slow": recorded(folder / "slow.servetop", stages=few, c0=0.06, seed=7)}


@pytest.mark.integration
@pytest.mark.parametrize("latency", ["ttft", "tpot", "itl", "e2el"])
@pytest.mark.parametrize(("percentile", "few"), [("p99", "100"), ("p90", "20")])
def test_a_percentile_of_too_few_requests_cannot_be_told_from_either_side(
    check: Check, sampled: dict[str, str], percentile: str, few: str, latency: str
) -> None:
    limit = ("--max-regression", f"{percentile}_{latency}_ms=10%")
    for run, baseline, side in ((few, "480", "run"), ("480", few, "baseline")):
        code, found, last = check(sampled[run], "--baseline", sampled[baseline], *limit)
        assert (code, outcomes(found)) == (98, ["cannot tell"])
        assert f"in the {side}: {few} requests give a {percentile} without an upper bound" in found["items"][0]["text"]
        assert last.startswith(f"servetop: cannot tell: {limit[1]}")


@pytest.mark.integration
def test_many_tokens_of_few_requests_show_no_regression_of_a_p99_however_slow_they_were(
    check: Check, sampled: dict[str, str]
) -> None:
    words = (sampled["slow"], "--baseline", sampled["1500"], "--max-regression", "p99_itl_ms=10%")
    assert check(*words, "--ignore", "p99-samples")[0] == 99
    code, found, _ = check(*words)
    assert (code, outcomes(found)) == (98, ["cannot tell"])
    assert "p99-samples is broken in the run: " in found["items"][0]["text"]


@pytest.mark.integration
def test_a_tail_is_judged_by_its_interval_if_the_rule_is_ignored(check: Check, sampled: dict[str, str]) -> None:
    words = (sampled["100"], "--baseline", sampled["480"], "--max-regression", "p99_e2el_ms=10%")
    (item, *_) = check(*words, "--ignore", "p99-samples")[1]["items"]
    assert (item["outcome"], item["measured"]["high"], "p99-samples" in item["text"]) == ("cannot tell", None, False)
