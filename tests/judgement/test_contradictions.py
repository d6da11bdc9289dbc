"""No two lines of one judgement contradict each other, for every kind of run and everything that may be unknown."""

from __future__ import annotations

import pytest

from servetop.analysis.trust.live_trust import live_trust
from tests.judgement.contradictions import contradictions
from tests.judgement.kinds import HARD, KINDS, scenario
from tests.judgement.matrix import observed_run, statements_about
from tests.judgement.observed import observations_of
from tests.judgement.statements import statements_of


@pytest.mark.parametrize("kind", [*KINDS, *HARD])
def test_no_two_lines_about_a_run_contradict_each_other(kind: str) -> None:
    run = scenario(kind, 0, seed=23)
    for name in observations_of(run.run):
        judged = observed_run(run, name)
        said, history = statements_about(judged, name), judged.record.history
        reasons = live_trust(history, 0, len(history.ticks)).reasons
        assert any(not each.live for each in said)
        assert list(contradictions(said, reasons=reasons)) == [], name


@pytest.mark.parametrize(
    ("lines", "pairs"),
    [
        (["headroom", "the KV cache fills at 4.9 req/s"], ["headroom | the KV cache fills at 4.9 req/s"]),
        (["KV-bound", "the engine kept up with the whole load"], ["KV-bound | the engine kept up with the whole load"]),
        (["client-bound", "try max_num_seqs 96"], ["client-bound | try max_num_seqs 96"]),
        (["no failure", "8 of 388 requests failed"], ["no failure | 8 of 388 requests failed"]),
        (["KV-bound", "the KV cache fills at 4.9 req/s"], []),
        (["headroom", "no queue, no failure"], []),
    ],
)
def test_lines_that_cannot_both_hold_are_found(lines: list[str], pairs: list[str]) -> None:
    assert list(contradictions(each for line in lines for each in statements_of(line))) == pairs


def test_a_late_client_refutes_what_is_said_of_the_engine() -> None:
    said, late = statements_of("the batch of 4 is full"), "requests sent 35606 ms late at p99"
    assert list(contradictions(said, reasons=[late])) == [f"{late} | the batch of 4 is full"]
    assert list(contradictions(said)) == []
