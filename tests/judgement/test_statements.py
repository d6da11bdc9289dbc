"""How the text about a run is split into statements."""

from __future__ import annotations

import math

import pytest

from tests.judgement.sentences import PATTERNS
from tests.judgement.statement_checks import CHECKS
from tests.judgement.statements import UnknownStatementError, number_of, seconds_of, statements_of

SENTENCES = {
    "batch-bound from 0:26 at 5.4 req/s: TTFT p99 up to 13 s as felt; sustainable ≈ 3.13 req/s [2.71, 3.4] with "
    "TTFT ≤ 1.0 s; try max_num_seqs 96": ["cause", "worst TTFT", "sustainable about", "batch advice"],
    "headroom: TTFT p99 up to 50.4 ms as felt; sustainable ≥ 30 req/s with TTFT ≤ 500 ms": [
        "cause", "worst TTFT", "sustainable at least",
    ],
    "requests arrive faster than the engine serves them at 16.2 req/s, with free KV blocks and batch slots": [
        "too fast", "free slots",
    ],
    "the KV cache fills at 4.9 req/s: its 899 blocks hold about 5 sequences": ["KV fills", "KV holds"],
    "the queue grows at 2.0 req/s, to 1,016 requests at 0:59": ["queue grows"],
    "nothing waits any more, 12 s after the load fell": ["nothing waits"],
    "no queue, no failure: the engine kept up with the whole load": ["no queue", "no failure", "kept up"],
    "TTFT p99 as felt at most 50.4 ms in any ten seconds": ["worst TTFT"],
    "8 of 388 requests failed, TTFT p99 up to 22 s": ["failed", "worst TTFT"],
    "try more KV memory, or shorter requests": ["more KV"],
    "try a lower rate, to see whether the load is the cause": ["lower load"],
    "network-bound: of 29 requests in flight the engine holds 5, TTFT p99 up to 24 s as felt": [
        "cause", "held between", "worst TTFT",
    ],
    "sustainable ≈ 1.09 req/s with TTFT ≤ 500 ms and TPOT ≤ 50 ms": ["sustainable about"],
}  # fmt: skip


@pytest.mark.parametrize("text", list(SENTENCES))
def test_a_sentence_is_split_into_its_statements(text: str) -> None:
    assert [each.name for each in statements_of(text)] == SENTENCES[text]


def test_the_figures_of_a_statement_are_read() -> None:
    cause, _, rate, _ = statements_of(next(iter(SENTENCES)), at=5.0)
    assert (cause.values["cause"], cause.said_at, cause.number("rate")) == ("batch-bound", 26.0, 5.4)
    assert (rate.number("rate"), rate.said_at) == (3.13, 5.0)
    (grows,) = statements_of("the queue grows, to 1,016 requests at 1:00:59", live=True)
    assert (grows.number("count"), grows.said_at, grows.live) == (1016.0, 3659.0, True)


@pytest.mark.parametrize(
    "text", ["the moon is full", "headroom: all is well", "no queue and no failure", "at most many waiting"]
)
def test_a_sentence_that_no_pattern_knows_is_not_passed_over(text: str) -> None:
    with pytest.raises(UnknownStatementError):
        statements_of(text)


def test_each_pattern_has_a_check() -> None:
    assert set(PATTERNS) == set(CHECKS)


def test_numbers_have_their_units() -> None:
    assert [number_of(text) for text in ("1,024", "34 ms", "2.5 s", "2 min")] == [1024.0, 0.034, 2.5, 120.0]
    assert math.isnan(number_of(None))
    assert math.isnan(seconds_of(None))


def test_a_replica_and_its_limit_are_statements_of_their_own() -> None:
    text = "replica 2 of 2 (http://sim-1): the batch of 2 is full"
    assert [each.name for each in statements_of(text)] == ["replica", "batch full"]
    headline = "batch-bound at replica 2 of 2 from 0:04 at 2.3 req/s"
    (cause,) = statements_of(headline)
    assert (cause.name, cause.values["cause"], cause.values["at"]) == ("cause", "batch-bound", "0:04")
    unknown = "more requests arrive than complete; which limit holds them is unknown: " + (
        "neither KV blocks nor the batch were full for most of the time"
    )
    assert [each.name for each in statements_of(unknown)] == ["limit unknown", "neither full"]
