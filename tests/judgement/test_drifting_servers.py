"""A search says that a server drifted if it did, and of the same server without a drift that it did not."""

from __future__ import annotations

import pytest

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import SearchLimits
from servetop.run.search.search_plan import SearchPlan
from tests.judgement.drifting_server import DriftingServer
from tests.judgement.searched_server import SearchedServer, searched
from tests.judgement.searched_servers import draw_case

CASE, SEED, BUDGET = draw_case("decode-bound", 31), 131, 600.0


def answer(server: SearchedServer) -> TierAnswer:
    plan = SearchPlan([[0]], [CASE.objective], SearchLimits(low=0.1, high=1000.0, budget=BUDGET))
    (found,) = plan.answers(searched(server, plan, [CASE.objective]))
    return found


@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_a_server_that_becomes_slower_is_said_to(factor: float) -> None:
    found = answer(DriftingServer(CASE, seed=SEED, factor=factor, since=0.4 * BUDGET))
    assert found.kind is AnswerKind.DRIFTED
    assert found.drift is not None
    assert found.drift.slower
    assert found.drift.since >= 0.2 * BUDGET


def test_a_steady_server_is_not_said_to_drift() -> None:
    assert answer(CASE.server(SEED)).kind is not AnswerKind.DRIFTED
