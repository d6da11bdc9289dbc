"""When an overload or an outage of a watched server counts as begun and as ended."""

from __future__ import annotations

import math
from typing import Any

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.fleet.server_episodes import EpisodeChange, ServerEpisodes

SERVING = (ReplicaClass.SERVING, "serving")
KV = (ReplicaClass.SATURATED, "KV-bound")
BATCH = (ReplicaClass.SATURATED, "batch-bound")
QUEUE = (ReplicaClass.QUEUE, "requests wait")
DEAD = (ReplicaClass.DEAD, "no response")
RESTARTED = (ReplicaClass.RESTARTED, "idle")
UNKNOWN = (ReplicaClass.UNKNOWN, "attaching")
REMOVED = (ReplicaClass.REMOVED, "not listed")
State = tuple[ReplicaClass, str]


def row(state: State, number: int = 0, **figures: Any) -> ReplicaRow:
    kind, text = state
    fields = {"since": math.nan, **figures}
    return ReplicaRow(
        number=number, name=f"gpu{number}", url=f"http://gpu{number}:8000", kind=kind, state=text, **fields
    )


def followed(*states: State, **figures: Any) -> list[EpisodeChange]:
    """What one server's states, two seconds each, are said to be: each is seen at its begin and one second later."""
    episodes, found = ServerEpisodes(), []
    for second in range(2 * len(states)):
        found += episodes.changes([row(states[second // 2], **figures)], float(second))
    return found


def said(changes: list[EpisodeChange]) -> list[tuple[str, str]]:
    return [("begins" if each.begins else "ends", each.kind) for each in changes]


def test_an_overload_begins_when_it_has_lasted_for_a_moment_and_ends_when_it_is_over_for_a_moment() -> None:
    changes = followed(SERVING, KV, KV, SERVING, SERVING)
    assert said(changes) == [("begins", "KV-bound"), ("ends", "KV-bound")]
    assert [each.since for each in changes] == [2.0, 2.0]
    assert changes[1].text == "gpu0: KV-bound for 0:04, now serving"


def test_an_overload_lasted_until_it_was_seen_last() -> None:
    changes = followed(SERVING, KV, KV, SERVING, SERVING, overloaded_until=5.25)
    assert changes[1].text == "gpu0: KV-bound for 0:03, now serving"
    silent = followed(SERVING, DEAD, DEAD, SERVING, SERVING, overloaded_until=5.25)
    assert silent[1].text == "gpu0: no response for 0:04, now serving", "that is no overload"


def test_a_server_that_is_slower_than_the_others_has_an_episode() -> None:
    slow = (ReplicaClass.SLOW, "slower than the others")
    changes = followed(SERVING, slow, slow, SERVING, SERVING, detail="4.1 × their time per output token")
    assert said(changes) == [("begins", "slower than the others"), ("ends", "slower than the others")]
    assert [each.text for each in changes] == [
        "gpu0: slower than the others: 4.1 × their time per output token",
        "gpu0: slower than the others for 0:04, now serving",
    ]


def test_a_server_that_drains_and_then_waits_for_its_end_has_one_episode() -> None:
    draining, empty = (ReplicaClass.DRAINING, "draining"), (ReplicaClass.DRAINING, "not ready")
    changes = followed(SERVING, draining, draining, empty, SERVING, SERVING, detail="/health: HTTP 503")
    assert said(changes) == [("begins", "not ready"), ("ends", "not ready")]
    assert [each.text for each in changes] == [
        "gpu0: draining: /health: HTTP 503",
        "gpu0: not ready for 0:06, now serving",
    ]


def test_a_server_that_fails_requests_has_an_episode_until_the_last_of_them() -> None:
    failing = (ReplicaClass.FAILING, "failing")
    changes = followed(SERVING, failing, failing, failing, SERVING, SERVING, detail="12% of requests")
    assert said(changes) == [("begins", "failing"), ("ends", "failing")]
    assert changes[0].text == "gpu0: failing: 12% of requests"


def test_a_state_of_less_than_a_moment_changes_nothing() -> None:
    assert followed(SERVING, KV, SERVING, DEAD, SERVING, SERVING) == []
    assert said(followed(KV, KV, SERVING, KV, KV)) == [("begins", "KV-bound")]


def test_another_overload_ends_the_one_before_it() -> None:
    kinds = said(followed(QUEUE, QUEUE, BATCH, BATCH))
    assert kinds == [("begins", "requests wait"), ("ends", "requests wait"), ("begins", "batch-bound")]


def test_a_server_that_returns_has_restarted_once() -> None:
    changes = followed(SERVING, DEAD, DEAD, RESTARTED, RESTARTED, RESTARTED, SERVING, SERVING, restarted_at=5.5)
    assert said(changes) == [
        ("begins", "no response"), ("ends", "no response"), ("begins", "restarted"), ("ends", "restarted"),
    ]  # fmt: skip
    assert changes[1].text == "gpu0: no response for 0:04, now restarted"
    assert (changes[2].since, changes[2].text) == (5.5, "gpu0: restarted, now idle")


def test_a_server_of_which_nothing_is_known_for_a_moment_keeps_its_state() -> None:
    assert said(followed(DEAD, DEAD, UNKNOWN, UNKNOWN, UNKNOWN, DEAD, DEAD)) == [("begins", "no response")]


def test_a_server_that_leaves_the_list_has_no_overload_any_more() -> None:
    changes = followed(KV, KV, REMOVED, REMOVED)
    assert said(changes) == [("begins", "KV-bound"), ("ends", "KV-bound")]
    assert changes[1].text == "gpu0: KV-bound for 0:04, not listed any more"


def test_the_begin_is_that_of_the_episode_where_it_is_known_and_the_text_has_the_evidence() -> None:
    (change,) = followed(KV, KV, since=0.25, detail="up to 100 % of blocks, 20 waiting")
    assert (change.since, change.text) == (0.25, "gpu0: KV-bound: up to 100 % of blocks, 20 waiting")
    (gone,) = followed((ReplicaClass.DEAD, "no metrics"), DEAD, detail="since 0:04")
    assert (gone.kind, gone.text) == ("no response", "gpu0: no response since 0:04")


def test_each_server_has_episodes_of_its_own() -> None:
    episodes = ServerEpisodes()
    found = [
        change
        for second in range(4)
        for change in episodes.changes([row(KV, 1), row(SERVING, 2), row(DEAD, 3)], float(second))
    ]
    assert [(each.name, each.kind) for each in found] == [("gpu1", "KV-bound"), ("gpu3", "no response")]
