"""The trust meter's checks: the displayed limit is the one that is applied."""

from __future__ import annotations

import pytest

from servetop.analysis.verdicts.trust import CheckState, Trust, TrustVerdict

TRUSTED = Trust(slip_p99=0.001, loop_lag_p99=0.001, offered_rate=10.0, sent_rate=10.0, seconds=10.0)


def trust(**changes: float | bool | None) -> Trust:
    values = {name: getattr(TRUSTED, name) for name in TRUSTED.__slots__} | changes
    return Trust(**values)


@pytest.mark.parametrize(
    ("in_flight", "limit"), [(10.0, 0.15), (100.0, 0.05), (float("nan"), 0.05)], ids=["few", "many", "unknown"]
)
def test_littles_law_is_judged_by_the_displayed_limit(in_flight: float, limit: float) -> None:
    for error, state, verdict in (
        (limit - 0.001, CheckState.PASSED, TrustVerdict.OK),
        (-limit - 0.001, CheckState.BROKEN, TrustVerdict.SUSPECT),
    ):
        found = trust(littles_law_error=error, in_flight=in_flight)
        check = found.checks["littles_law"]
        assert check.limit == pytest.approx(limit)
        assert (check.state, found.verdict) == (state, verdict)


def test_an_exempt_check_has_a_reason() -> None:
    held = trust(sent_rate=7.0, limited=True, concurrency_limit=13).checks["sent_share"]
    assert (held.state, held.exemption) == (CheckState.EXEMPT, "held back by limit 13")
    several = trust(sent_rate=7.0, limited=True).checks["sent_share"]
    assert several.exemption == "held back by the limit"
    short = trust(sent_rate=7.0, seconds=0.3).checks["sent_share"]
    assert (short.state, short.exemption) == (CheckState.EXEMPT, "too short to judge")
    assert trust(sent_rate=7.0).checks["sent_share"].state is CheckState.BROKEN
    assert trust(sent_rate=9.9, limited=True).checks["sent_share"].state is CheckState.PASSED


def test_requests_that_the_server_refused_are_not_the_clients_fault() -> None:
    refused = trust(sent_rate=7.0, refused_rate=2.9)
    assert refused.checks["sent_share"].exemption == "others refused"
    assert refused.verdict is TrustVerdict.OK
    assert trust(sent_rate=7.0, refused_rate=1.0).verdict is TrustVerdict.CLIENT_BOUND


def test_littles_law_without_enough_requests_is_not_judged() -> None:
    few = trust(littles_law_error=-1.0, in_flight=1.2)
    assert (few.checks["littles_law"].state, few.verdict) == (CheckState.EXEMPT, TrustVerdict.OK)
    failed = trust(littles_law_error=-0.99, in_flight=40.0, all_failed=True)
    assert failed.checks["littles_law"].exemption == "none succeeded"
    assert failed.reasons == ("no request succeeded, so nothing was measured",)


def test_checks_without_values_are_unknown() -> None:
    states = {name: check.state for name, check in Trust().checks.items()}
    assert set(states.values()) == {CheckState.UNKNOWN}


@pytest.mark.parametrize(
    ("stamped", "state", "verdict"),
    [(True, CheckState.EXEMPT, TrustVerdict.OK), (False, CheckState.BROKEN, TrustVerdict.CLIENT_BOUND)],
)
def test_event_loop_lag_is_exempt_with_kernel_timestamps(
    stamped: bool, state: CheckState, verdict: TrustVerdict
) -> None:
    found = trust(loop_lag_p99=0.5, stamped=stamped)
    assert (found.checks["loop_lag_p99"].state, found.verdict) == (state, verdict)
    assert bool(found.reasons) == (verdict is TrustVerdict.CLIENT_BOUND)


@pytest.mark.parametrize(
    ("slip_p99", "late_share", "verdict"),
    [
        (0.250, 0.005, TrustVerdict.OK),  # the requests take ten seconds each
        (0.050, 0.080, TrustVerdict.CLIENT_BOUND),  # half a second
        (0.004, 0.080, TrustVerdict.OK),  # requests so short that any client's turnaround is a part of them
        (0.250, float("nan"), TrustVerdict.CLIENT_BOUND),  # an open loop has a schedule
    ],
)
def test_a_closed_loop_is_judged_by_the_load_lost_to_lateness(
    slip_p99: float, late_share: float, verdict: TrustVerdict
) -> None:
    found = trust(slip_p99=slip_p99, late_share=late_share)
    assert found.verdict == verdict
    judged = found.checks.get("late_share")
    assert judged is None or (judged.state is CheckState.PASSED) == (late_share <= 0.03)
    assert ("late_share" in found.checks) == found.closed
    assert ("slip_p99" in found.checks) != found.closed


def test_a_closed_loop_cannot_send_less_than_it_offers() -> None:
    assert trust(sent_rate=7.0, late_share=0.001).checks["sent_share"].exemption == "closed loop"
