"""Other clients of a server: when they explain what the engine holds, and what is said of them."""

from __future__ import annotations

import pytest

from servetop.analysis.trust.other_clients import requests_text
from servetop.analysis.trust.trust_check import CheckState
from servetop.analysis.trust.trust_verdict import TrustVerdict
from tests.analysis.test_trust import trust


def test_other_clients_of_the_server_are_named_instead_of_what_they_disturb() -> None:
    shared = trust(littles_law_error=6.57, token_error=25.45, in_flight=1.8)
    assert shared.reasons == (
        "other traffic: about 87% of the requests in the engine and 96% of its tokens are not from this run",
    )
    assert shared.verdict is TrustVerdict.SUSPECT
    assert shared.advice.startswith("measure a server that no other client uses")


def test_a_queue_far_beyond_the_own_requests_is_that_of_others_though_few_pages_arrive() -> None:
    flooded = trust(littles_law_error=13.0, in_flight=1.2)
    assert flooded.reasons == ("other traffic: about 93% of the requests in the engine are not from this run",)
    assert flooded.checks["littles_law"].state is CheckState.BROKEN
    assert not trust(littles_law_error=13.0, in_flight=1.2, all_failed=True).serves_others


def test_requests_that_the_engine_held_while_the_client_had_none_are_those_of_others() -> None:
    seen_between = trust(foreign=12.0, token_error=13.6)
    assert seen_between.reasons == ("other traffic: about 93% of the engine's tokens are not from this run",)
    assert seen_between.other_requests == "about 12 requests in the engine are not from this run"
    assert not trust(foreign=12.0, token_error=0.2).serves_others
    assert not trust(foreign=1.0, token_error=13.6).serves_others
    assert not trust(foreign=12.0, token_error=13.6, all_failed=True).serves_others


@pytest.mark.parametrize(
    ("requests", "tokens", "in_flight"),
    [
        (6.57, 0.02, 20.0),
        (0.1, 0.6, 20.0),
        (-0.5, 3.0, 20.0),
        (float("nan"), 3.0, 20.0),
        (0.9, 0.9, 1.2),
        (1.9, float("nan"), 20.0),
        (2.5, float("nan"), 1.1),
    ],
)
def test_a_disagreement_that_other_clients_do_not_explain_is_not_taken_for_them(
    requests: float, tokens: float, in_flight: float
) -> None:
    found = trust(littles_law_error=requests, token_error=tokens, in_flight=in_flight)
    assert not [reason for reason in found.reasons if "other traffic" in reason]
    assert found.advice == ""


def test_the_requests_of_others_are_counted() -> None:
    assert (
        requests_text(5.0, in_flight=2.0, foreign=float("nan"))
        == "about 10 of 12 requests in the engine are not from this run"
    )
