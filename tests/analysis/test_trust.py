"""The trust meter's checks: the displayed limit is the one that is applied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.trust.engine_times import EngineTimes, MeanTimes
from servetop.analysis.trust.trust import Trust
from servetop.analysis.trust.trust_check import CheckState
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.tick import SenderClass

TRUSTED = Trust(slip_p99=0.001, loop_lag_p99=0.001, offered_rate=10.0, sent_rate=10.0, seconds=10.0)


def trust(**changes: object) -> Trust:
    return replace(TRUSTED, **changes)  # type: ignore[arg-type]


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


def test_differences_have_the_minus_sign_of_the_figures_beside_them() -> None:
    assert trust(littles_law_error=-0.27, token_error=-0.12, in_flight=100.0).reasons[:2] == (
        "engine holds −27% requests vs client",
        "engine counts −12% tokens vs client",
    )


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


@pytest.mark.parametrize(
    ("ttft", "late", "state", "verdict"),
    [
        (0.010, 0.009, CheckState.PASSED, TrustVerdict.OK),
        (0.010, 0.012, CheckState.BROKEN, TrustVerdict.SUSPECT),
        (0.200, 0.049, CheckState.PASSED, TrustVerdict.OK),
        (0.200, 0.051, CheckState.BROKEN, TrustVerdict.SUSPECT),
        (5.000, 0.099, CheckState.PASSED, TrustVerdict.OK),
        (5.000, 0.101, CheckState.BROKEN, TrustVerdict.CLIENT_BOUND),
        (float("nan"), 0.099, CheckState.PASSED, TrustVerdict.OK),
    ],
    ids=["normal", "for 10 ms", "a quarter", "more", "slow engine", "client", "no tokens"],
)
@pytest.mark.parametrize("name", ["slip_p99", "loop_lag_p99"])
def test_lateness_is_judged_by_its_share_of_ttft(
    name: str, ttft: float, late: float, state: CheckState, verdict: TrustVerdict
) -> None:
    found = trust(ttft_p99=ttft, **{name: late})
    assert (found.checks[name].state, found.verdict) == (state, verdict)


def times(client: float, engine: float, *, trip: float = 0.003) -> EngineTimes:
    return EngineTimes(ttft=MeanTimes(client, engine), round_trip=trip)


@pytest.mark.parametrize(
    ("measured", "limit", "verdict"),
    [
        (times(0.0460, 0.0073), 0.010, TrustVerdict.SUSPECT),
        (times(0.0168, 0.0073), 0.010, TrustVerdict.OK),
        (times(0.0050, 0.0073), 0.010, TrustVerdict.OK),
        (times(1.4000, 1.0000), 0.500, TrustVerdict.OK),
        (times(1.6000, 1.0000), 0.500, TrustVerdict.SUSPECT),
        (times(0.1500, 0.0100, trip=0.080), 0.160, TrustVerdict.OK),
        (EngineTimes(), 0.010, TrustVerdict.OK),
    ],
    ids=["late", "near", "below", "server", "much of it", "far away", "unknown"],
)
def test_a_ttft_far_above_the_engines_own_is_suspect(
    measured: EngineTimes, limit: float, verdict: TrustVerdict
) -> None:
    found = trust(times=measured)
    assert found.checks["ttft"].limit == pytest.approx(limit)
    assert found.verdict is verdict
    assert found.reasons == (
        ()
        if verdict is TrustVerdict.OK
        else (
            f"client TTFT mean {measured.ttft.client * 1e3:.1f} ms, engine's own {measured.ttft.engine * 1e3:.1f} ms: "
            "the difference arises outside the engine",
        )
    )


def test_only_what_was_compared_is_named() -> None:
    assert TRUSTED.compared == ("slip", "loop lag", "sent rate")
    full = trust(littles_law_error=0.01, in_flight=50.0, token_error=0.0, times=times(0.009, 0.007))
    assert full.compared == ("slip", "loop lag", "sent rate", "requests", "tokens", "TTFT")
    assert trust(stamped=True, loop_lag_p99=0.5).compared == ("slip", "sent rate")
    assert trust(late_share=0.01).compared == ("lateness", "loop lag", "sent rate")


@pytest.mark.parametrize(
    ("sender_class", "words"),
    [
        (SenderClass.ORDINARY, "permit it: --cap-add SYS_NICE"),
        (SenderClass.LEFT, "use --workers"),
        (SenderClass.REAL_TIME, ""),
        (None, ""),
    ],
)
def test_late_senders_get_advice_by_their_scheduling_class(sender_class: SenderClass | None, words: str) -> None:
    advice = trust(loop_lag_p99=0.2, sender_class=sender_class).advice
    assert words in advice
    assert bool(advice) is bool(words)
    assert trust(sender_class=sender_class).advice == ""
