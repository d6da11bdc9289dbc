"""The table of replicas at a time."""

from __future__ import annotations

import dataclasses

from servetop.core.events import ReplicaSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.tui.state.replicas import ReplicaHistory

FACTS = EngineFacts(name="vllm", title="vLLM", replica_urls=("http://gpu7:8000", "http://gpu8:8000"))


def caught(replica: int, at: float, *, running: float, tokens: float) -> ReplicaSample:
    return ReplicaSample(
        replica=replica, scrape_start=at - 0.01, scrape_end=at, running=running, waiting=0.0, kv_usage=0.25,
        preemptions_total=1.0, generation_tokens_total=tokens,
    )  # fmt: skip


def lines(history: ReplicaHistory, at: float, facts: EngineFacts | None = FACTS, width: int = 100) -> list[str]:
    return ["".join(text for text, _ in row).rstrip() for row in history.rows(facts, at, width)]


def test_each_replica_has_a_row_as_of_the_time_shown() -> None:
    history = ReplicaHistory()
    history.fold([caught(0, 1.0, running=2, tokens=0), caught(1, 1.0, running=1, tokens=0)])
    history.fold([caught(0, 3.0, running=7, tokens=400), caught(1, 9.0, running=5, tokens=80)])
    heading, first, second = lines(history, 3.5)
    assert heading.split() == ["replica", "run", "wait", "KV", "preempted", "tokens", "out"]
    assert first.split() == ["http://gpu7:8000", "7", "0", "25.0", "%", "1", "200/s"]
    assert second.split() == ["http://gpu8:8000", "1", "0", "25.0", "%", "1", "–"]


def test_a_replica_that_is_away_differs_from_one_without_samples() -> None:
    history = ReplicaHistory()
    history.fold([caught(0, 1.0, running=2, tokens=0)])
    assert [line.split(maxsplit=1)[1] for line in lines(history, 9.0)[1:]] == ["away", "no sample yet"]


def test_the_newest_samples_are_those_of_the_time_shown() -> None:
    history = ReplicaHistory()
    history.fold([caught(0, 1.0, running=2, tokens=0)])
    history.fold([caught(0, 3.0, running=7, tokens=400), caught(1, 9.0, running=5, tokens=80)])
    assert [(each.replica, each.running, each.scrape_end) for each in history.newest(3.5)] == [(0, 7, 3.0)]
    assert [(each.replica, each.running) for each in history.newest(9.0)] == [(0, 7), (1, 5)]
    assert history.newest(0.5) == []


def test_a_single_server_has_no_table() -> None:
    history = ReplicaHistory()
    assert lines(history, 1.0, dataclasses.replace(FACTS, replica_urls=())) == []
    assert lines(history, 1.0, None) == []


def test_a_narrow_screen_cuts_the_rows() -> None:
    history = ReplicaHistory()
    assert all(len(line) <= 20 for line in lines(history, 1.0, width=20))


def test_the_samples_of_all_replicas_are_kept_for_the_judgement() -> None:
    history = ReplicaHistory()
    first, second = caught(0, 1.0, running=2, tokens=0), caught(1, 1.5, running=1, tokens=80)
    later = dataclasses.replace(caught(0, 2.0, running=3, tokens=9), kv_blocks_total=400.0, max_num_seqs=16.0)
    history.fold([first, second])
    history.fold([later])
    assert history.samples() == [first, second, later]
