"""A search of a server that restarts is one of the server as it is afterwards, within the same budget."""

from __future__ import annotations

import functools

import pytest

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, SearchLimits
from servetop.run.search.search_plan import SearchPlan
from tests.judgement.drifting_server import DriftingServer
from tests.judgement.restarting_server import RestartingServer
from tests.judgement.searched_server import SearchedServer, searched
from tests.judgement.searched_servers import draw_case

CASE, SEED, BUDGET = draw_case("decode-bound", 31), 131, 300.0


def found(server: SearchedServer, *, precision: float = 0.05) -> tuple[Evidence, TierAnswer]:
    limits = SearchLimits(low=0.1, high=1000.0, budget=BUDGET, precision=precision)
    plan = SearchPlan([[0]], [CASE.objective], limits)
    evidence = searched(server, plan, [CASE.objective])
    (answer,) = plan.answers(evidence)
    return evidence, answer


@functools.cache
def before_any_restart() -> TierAnswer:
    _, answer = found(CASE.server(SEED))
    return answer


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_the_answer_is_that_of_the_server_after_its_restart(factor: float) -> None:
    evidence, answer = found(RestartingServer(CASE, seed=SEED, factor=factor, since=0.4 * BUDGET))
    _, alone = found(DriftingServer(CASE, seed=SEED, factor=factor, since=0.0))
    before = before_any_restart()
    assert answer.kind is not AnswerKind.DRIFTED
    assert answer.low < alone.high, "the intervals of one server have loads in common"
    assert alone.low < answer.high
    assert answer.high < before.low if factor > 1 else answer.low > before.high
    assert evidence.earlier
    assert evidence.seconds <= BUDGET + 60.0


def test_a_restart_at_the_end_of_the_budget_leaves_the_rest_of_it_only() -> None:
    evidence, answer = found(RestartingServer(CASE, seed=SEED, factor=2.0, since=BUDGET - 90.0), precision=0.005)
    assert evidence.earlier
    assert answer.kind is AnswerKind.WIDE
    assert evidence.seconds <= BUDGET + 60.0
