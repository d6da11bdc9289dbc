"""The simulated runs show what their truths say, and are the same for the same seed."""

from __future__ import annotations

import pytest

from servetop.core.events import RequestStatus
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from tests.judgement.__main__ import line, main
from tests.judgement.kinds import KINDS, scenario
from tests.judgement.queue_truth import lasting_queues, share_in_time
from tests.judgement.scenario import Cause, Scenario, describe

SEED = 5


@pytest.fixture(scope="module")
def drawn() -> dict[str, Scenario]:
    """The first scenario of each kind."""
    return {kind: scenario(kind, 0, seed=SEED) for kind in KINDS}


def test_there_are_at_least_seven_scenarios_of_each_kind_and_64_in_all() -> None:
    assert min(len(draws) for draws in KINDS.values()) >= 7
    assert sum(len(draws) for draws in KINDS.values()) >= 64


def test_each_kind_has_its_cause(drawn: dict[str, Scenario]) -> None:
    causes = {kind: each.truth.cause for kind, each in drawn.items() if kind != "ramp"}
    assert causes == {
        "kv": Cause.KV, "batch": Cause.BATCH, "rate": Cause.RATE, "long": Cause.LONG_PROMPTS,
        "client": Cause.CLIENT, "failing": Cause.FAILING, "healthy": Cause.HEALTHY,
    }  # fmt: skip
    assert drawn["ramp"].truth.cause in (Cause.KV, Cause.BATCH, Cause.RATE)


@pytest.mark.parametrize("kind", ["kv", "batch", "rate", "long", "ramp"])
def test_requests_are_late_from_the_onset_on_and_not_before(drawn: dict[str, Scenario], kind: str) -> None:
    each = drawn[kind]
    onset, until = each.truth.onset, each.truth.until
    assert onset is not None
    assert until is not None
    assert onset < until <= each.run.ticks[-1].end
    before = share_in_time(each.run, each.objective, until=onset - 10)
    assert before > 0.9
    assert share_in_time(each.run, each.objective, start=onset, until=until - 5) < before - 0.2


def test_preemptions_occur_only_for_lack_of_kv_blocks(drawn: dict[str, Scenario]) -> None:
    last = {kind: each.run.ticks[-1].engine for kind, each in drawn.items() if kind in ("batch", "healthy", "client")}
    assert {kind: sample and sample.preemptions_total for kind, sample in last.items()} == dict.fromkeys(last, 0.0)


def test_the_slow_client_sends_late_while_no_queue_lasts_in_the_engine(drawn: dict[str, Scenario]) -> None:
    each = drawn["client"]
    assert each.truth.client_rate is not None
    assert each.truth.client_rate < each.plan.config.stages[-1].request_rate
    slips = [(record.sent or 0.0) - record.due for record in each.run.records if record.due > (each.truth.onset or 0.0)]
    assert sum(slip > 0.1 for slip in slips) > 0.95 * len(slips)
    assert lasting_queues(each.run) == []


def test_requests_fail_only_in_the_failing_engine(drawn: dict[str, Scenario]) -> None:
    failed = {
        kind: sum(record.status not in (RequestStatus.OK, RequestStatus.CANCELLED) for record in each.run.records)
        for kind, each in drawn.items()
    }
    assert [kind for kind, count in failed.items() if count] == ["failing"]


def test_the_sustainable_rate_is_sustained_and_a_higher_one_is_not(drawn: dict[str, Scenario]) -> None:
    each = drawn["kv"]
    rate, base = each.sustainable_rate, each.base
    assert rate is not None
    assert base is not None
    assert base.share_in_time(rate) >= 0.95 > base.share_in_time(1.15 * rate)
    assert rate <= (each.knee_rate or 0.0)
    assert (each.overloaded_from or 0.0) <= (each.truth.onset or 0.0)


def test_a_seed_gives_the_same_run_again_and_another_seed_another_one(drawn: dict[str, Scenario]) -> None:
    first = drawn["batch"]
    again, other = (scenario("batch", 0, seed=seed) for seed in (SEED, SEED + 1))
    assert first.plan == again.plan != other.plan
    assert first.truth == again.truth
    assert [tick.engine for tick in first.run.ticks] == [tick.engine for tick in again.run.ticks]


def test_the_list_shows_a_line_for_each_scenario(
    drawn: dict[str, Scenario], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KINDS, "healthy", KINDS["healthy"][:2])
    assert main(["--seed", str(SEED), "--kind", "healthy"]) == 0
    assert capsys.readouterr().out.count("healthy ") >= 2
    assert f"{drawn['rate'].truth.onset:.1f}" in line(drawn["rate"], rates=True)
    assert f"kv from {drawn['kv'].truth.onset:.1f} s" in describe(drawn["kv"])


def test_the_dominant_limit_of_an_overload_is_the_one_it_was_drawn_for(drawn: dict[str, Scenario]) -> None:
    limits = {kind: lasting_queues(drawn[kind].run)[0].limit for kind in ("kv", "batch", "rate")}
    assert limits == {"kv": AdmissionLimit.KV, "batch": AdmissionLimit.BATCH, "rate": AdmissionLimit.BUDGET}
