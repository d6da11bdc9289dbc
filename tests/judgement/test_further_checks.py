"""Statements about the network, other clients, held sequences, silences, and loads that show too little."""

from __future__ import annotations

import pytest

from tests.judgement.kinds import scenario
from tests.judgement.known_truth import KnownTruth
from tests.judgement.statement_checks import check
from tests.judgement.statements import statements_of

SEED = 22
FRONT_END = "the network, a proxy or the server's front end holds requests"
NEITHER = "neither KV blocks nor the batch were full for most of the time"
GREW = "requests in flight still grew when the load ended: the engine may not keep up"


def _verdict(text: str, truth: KnownTruth, *, at: float | None = None, live: bool = False) -> bool | None:
    (statement,) = statements_of(text, at=at, live=live)
    return check(statement, truth)


def _truth(kind: str, number: int = 0) -> KnownTruth:
    return KnownTruth(scenario(kind, number, seed=SEED))


@pytest.fixture(scope="module")
def batch() -> KnownTruth:
    return _truth("batch", 4)


@pytest.fixture(scope="module")
def healthy() -> KnownTruth:
    return _truth("healthy")


@pytest.fixture(scope="module")
def slow() -> KnownTruth:
    return _truth("slow-network")


def test_requests_are_held_by_a_network_and_not_by_a_full_batch(slow: KnownTruth, batch: KnownTruth) -> None:
    for text in (
        FRONT_END,
        "network-bound",
        "try a client nearer to the server, or compare with the engine's own latencies",
    ):
        assert _verdict(text, slow) is True
        assert _verdict(text, batch) is False


def test_the_mean_ttfts_of_both_sides_are_compared(slow: KnownTruth) -> None:
    client, engine = slow.mean_ttfts
    assert client > 2 * engine
    text = "mean TTFT is {:.0f} ms, the engine's own {:.0f} ms"
    assert _verdict(text.format(1e3 * client, 1e3 * engine), slow) is True
    assert _verdict(text.format(1e3 * client, 1e3 * client), slow) is False
    assert _verdict(text.format(2e3 * client, 1e3 * engine), slow) is False


def test_the_requests_in_the_engine_are_counted(batch: KnownTruth) -> None:
    loaded = batch.state.times >= batch.state.run.stages[0].at
    flying = float(batch.state.in_flight[loaded].mean())
    text = "of {:.0f} requests in flight the engine holds {:.0f}"
    assert _verdict(text.format(flying, flying), batch) is True
    assert _verdict(text.format(flying, flying / 3), batch) is False


@pytest.mark.parametrize(
    "text", ["the latencies are those of both loads together", "try a server that no other client uses"]
)
def test_both_loads_are_those_of_several_clients(text: str, healthy: KnownTruth) -> None:
    assert _verdict(text, _truth("others")) is True
    assert _verdict(text, healthy) is False


def test_the_sequences_of_a_full_cache_are_counted() -> None:
    truth = _truth("kv")
    ran, fit = truth.ran_in_queues, sum(truth.sequences_that_fit) / 2
    assert _verdict(f"it holds about {ran:.0f} sequences", truth) is True
    assert _verdict(f"its 899 blocks hold about {5 * ran:.0f} sequences", truth) is False
    text = "it holds about {:.0f} sequences, of the {:.0f} that its 899 blocks should hold"
    assert _verdict(text.format(ran, fit), truth) is True
    assert _verdict(text.format(3 * ran + 10, fit), truth) is False
    assert _verdict(text.format(ran, 3 * fit), truth) is False


def test_a_full_batch_is_not_neither(batch: KnownTruth) -> None:
    assert _verdict(NEITHER, batch) is False
    assert _verdict(NEITHER, _truth("rate")) is True


def test_a_load_is_too_short_or_still_grows(batch: KnownTruth, healthy: KnownTruth) -> None:
    assert _verdict(GREW, _truth("large-batch")) is True
    assert _verdict(GREW, batch) is False
    assert _verdict(GREW, healthy) is not True
    assert _verdict("requests were left unserved when the load ended: the engine may not keep up", batch) is False
    assert _verdict("no stage lasted 10 s: too short to tell whether the engine keeps up", batch) is False
    assert _verdict("too few bursts came to tell whether the engine keeps up with their rate", healthy) is False
    assert _verdict("too few bursts came to tell whether the engine keeps up with their rate", _truth("bursty")) is True


def test_a_batch_without_memory_is_one_with_used_blocks(batch: KnownTruth) -> None:
    at = batch.state.queues[0].start + 10.0
    text = "a larger batch would soon fill the KV blocks"
    assert _verdict(text, batch, at=at, live=True) is (batch.kv_peak(at - 12.0, at) >= 0.7)
    kv = _truth("kv")
    assert _verdict(text, kv, at=kv.state.queues[0].start + 5.0, live=True) is True


def test_a_silence_is_as_long_as_the_gap_between_tokens(healthy: KnownTruth) -> None:
    assert _verdict("no token arrives for 40 s while requests are in flight", healthy) is False
    assert _verdict("no token for 9 s", healthy, at=20.0, live=True) is False
    longest = healthy.state.longest_silence
    assert _verdict(f"no token arrives for {longest:.0f} s while requests are in flight", healthy) is True


def test_the_share_within_the_objectives_is_that_of_the_last_requests(batch: KnownTruth, healthy: KnownTruth) -> None:
    at = batch.state.queues[0].start + 25.0
    assert _verdict("99% of the requests keep the objectives", batch, at=at, live=True) is False
    assert _verdict("100% of the requests keep the objectives", healthy, at=20.0, live=True) is True


@pytest.mark.parametrize(
    "text",
    [
        "nothing was sent: the run has no load",
        "start the server, or correct --url",
        "engine failed at 0:35: vLLM ended with exit code 1",
        "the engine failed: vLLM ended with exit code 1",
        "try a lower rate, or a higher limit at the server: it refuses requests above its own",
        "the batch size changes: max_num_seqs 64 → 256",
    ],
)  # fmt: skip
def test_what_did_not_happen_is_false(text: str, healthy: KnownTruth) -> None:
    assert _verdict(text, healthy) is False
