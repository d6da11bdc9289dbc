"""Which of several replicas the verdict of one time names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.replicas_now import busy_replicas
from servetop.analysis.diagnosis.verdict_now import verdict_now
from servetop.core.events import ReplicaSample
from tests.analysis.test_verdict_now import (
    FACTS,
    FALLING_BEHIND,
    KEEPING_UP,
    KV,
    PREEMPTING,
    SAMPLE,
    STAGE,
    stats_of,
)

POOL = replace(FACTS, managed=False, max_num_seqs=None, replica_urls=("http://a", "http://b", "http://c"))


def replica(number: int, **changes: Any) -> ReplicaSample:
    figures: dict[str, Any] = {"running": 8.0, "waiting": 0.0, "kv_usage": 0.4, "scrape_end": 59.9}
    return ReplicaSample(replica=number, scrape_start=59.9, **figures | changes)


def moment_of(*replicas: ReplicaSample, limit: Limit | None = Limit.UNKNOWN) -> Moment:
    waiting = sum(each.waiting or 0.0 for each in replicas)
    usage = sum(each.kv_usage or 0.0 for each in replicas) / len(replicas)
    sample = replace(SAMPLE, running=24, waiting=waiting, kv_usage=usage)
    rates = KEEPING_UP if limit is None else FALLING_BEHIND
    return Moment(
        stats=stats_of(rates, engine=sample), facts=POOL, stage=replace(STAGE, max_num_seqs=None), load_since=10.0,
        kv_peak=usage, limit=limit, replicas=replicas,
    )  # fmt: skip


def test_the_replica_with_the_queue_is_named_with_what_is_full_there() -> None:
    line = verdict_now(moment_of(replica(0), replica(1, waiting=31.0, kv_usage=1.0), replica(2, waiting=1.0))).line
    assert line == (
        "queue growing: 31 waiting at replica 2 of 3, KV blocks full there, done 12.0 of 16.0 req/s "
        "→ send less to replica 2, or lower the rate below 12.0"
    )


def test_a_full_batch_is_told_where_the_replica_exports_its_limit() -> None:
    full = replica(2, waiting=31.0, max_num_seqs=8.0)
    assert "31 waiting at replica 3 of 3, batch full there" in verdict_now(moment_of(replica(0), replica(1), full)).line


def test_without_a_known_limit_the_cause_stays_open() -> None:
    line = verdict_now(moment_of(replica(0), replica(1, waiting=31.0), replica(2))).line
    assert "31 waiting at replica 2 of 3, done 12.0 of 16.0 req/s" in line
    assert "cause unknown without the engine's batch limit" in line


def test_two_of_three_replicas_are_named_together() -> None:
    line = verdict_now(moment_of(replica(0, waiting=9.0), replica(1), replica(2, waiting=11.0))).line
    assert "20 waiting at replicas 1 and 3 of 3" in line


@pytest.mark.parametrize(
    "replicas",
    [
        (replica(0, waiting=10.0), replica(1, waiting=31.0), replica(2, waiting=8.0)),  # all have a queue
        (replica(0), replica(1), replica(2)),  # none has one
        (replica(0), replica(1, waiting=31.0)),  # one was never scraped
        (replica(0), replica(1, waiting=31.0), replica(2, scrape_end=50.0)),  # one is away
        (replica(0), replica(1, waiting=31.0), replica(2, waiting=None)),  # one exports no queue
    ],
)
def test_no_replica_is_named_without_a_difference_that_is_known(replicas: tuple[ReplicaSample, ...]) -> None:
    assert busy_replicas(moment_of(*replicas)) is None


def test_headroom_is_judged_by_the_fullest_replica() -> None:
    line = verdict_now(moment_of(replica(0), replica(1, kv_usage=0.97), replica(2), limit=None)).line
    assert "KV up to 97.0 %" in line
    assert "hold the load: the KV cache is nearly full" in line


def test_a_batch_size_is_advised_only_with_metrics_of_every_replica() -> None:
    full = [replica(number, waiting=9.0, kv_usage=0.99) for number in range(3)]
    all_seen, one_unseen = (
        replace(moment_of(*seen, limit=Limit.KV), episodes=(KV, PREEMPTING)) for seen in (full, full[:2])
    )
    assert "max_num_seqs ≈ 192 or more KV memory" in verdict_now(all_seen).line
    assert "→ more KV memory, or shorter requests" in verdict_now(one_unseen).line
