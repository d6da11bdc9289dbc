"""One of several watched servers: its row; its states and episodes are tested in test_fleet_state.py."""

from __future__ import annotations

import math

import pytest

from servetop.analysis.fleet.replica_row import ReplicaRow
from servetop.core.events import ReplicaSample
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState, facts_text
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.merged.tick_rows import TickRows
from servetop.core.tick import ClientTick, Tick
from servetop.tui.state.judged_replica import JudgedReplica

FACTS = facts_text(EngineFacts(name="vllm", title="vLLM", version="0.11.0", model="tiny"))
CHANGE = ReplicaChange(
    at=0.5, replica=0, name="gpu0", url="http://gpu0", state=ReplicaState.ATTACHED, engine=FACTS
)  # fmt: skip
SECONDS = 10


def row(*counts: int) -> ReplicaRow:
    """Of a server whose first tokens, nine of them, are counted in the buckets up to 0.3 s, 0.5 s and infinity."""
    names = "\n".join(f"vllm:time_to_first_token_seconds_bucket{{le={bound}}}" for bound in ("0.3", "0.5", "+Inf"))
    replica = JudgedReplica(0, keep=None)
    replica.add(
        [ReplicaSample(replica=0, scrape_start=at, scrape_end=at, running=1.0) for at in range(1, SECONDS)],
        [CHANGE],
        [
            SeriesScrape(at=1.0, names=names, numbers=pack_numbers([0.0] * 3)),
            SeriesScrape(at=9.0, names=None, numbers=pack_numbers([float(each) for each in counts])),
        ],
    )
    replica.extend(TickRows([Tick(client=ClientTick(index=index)) for index in range(4 * SECONDS)]))
    return replica.row(float(SECONDS))


def test_a_ttft_in_the_first_bucket_of_its_histogram_is_at_most_its_bound() -> None:
    first, second, unknown = row(9, 9, 9), row(0, 9, 9), row(0, 0, 0)
    assert (first.ttft_p90, first.ttft_at_most) == (0.3, True)
    assert second.ttft_p90 == pytest.approx(0.48)
    assert not second.ttft_at_most
    assert math.isnan(unknown.ttft_p90)
    assert not unknown.ttft_at_most
