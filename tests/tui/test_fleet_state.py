"""Several watched servers on the screen: each judged as if it was watched alone, live as later."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from servetop.analysis.fleet.replica_row import ReplicaClass
from servetop.analysis.live_stats import watched_stats
from servetop.core.events import ReplicaSample, RunEnd
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState, facts_text
from servetop.core.interfaces.run_source import EngineFacts, RunUpdate
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.sample_rows import SampleRow, SampleRows, last_sample
from servetop.core.merged.tick_rows import MergedTick, TickRow, TickRows
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.tui.state.fleet_state import FleetFrame, FleetState, judged_ticks
from servetop.tui.state.fleet_table import fleet_rows

FACTS = EngineFacts(name="vllm", title="vLLM", version="0.11.0", model="tiny", max_num_seqs=16)
SECONDS = 60
FULL_FROM = 20.0
GONE_FROM = 40.0


def change(number: int, at: float, state: ReplicaState, facts: EngineFacts | None = FACTS) -> ReplicaChange:
    engine = facts_text(facts) if facts is not None and state.responds else None
    return ReplicaChange(
        at=at, replica=number, name=f"gpu{number}", url=f"http://gpu{number}", state=state, engine=engine
    )


def sample(number: int, at: float) -> ReplicaSample:
    """Of server 0, which is full from FULL_FROM on, or of another, which serves."""
    full = number == 0 and at >= FULL_FROM
    return ReplicaSample(
        replica=number, scrape_start=at - 0.01, scrape_end=at, running=8.0, waiting=20.0 if full else 0.0,
        kv_usage=1.0 if full else 0.3, preemptions_total=0.0, generation_tokens_total=at * 100 * (number + 1),
        prompt_tokens_total=0.0, first_tokens_total=at * 2, first_token_seconds_total=at * 0.2,
    )  # fmt: skip


CHANGES = [
    *(change(number, 0.5, ReplicaState.ATTACHED) for number in range(2)),
    change(2, 0.5, ReplicaState.ATTACHED, dataclasses.replace(FACTS, max_num_seqs=8)),
    change(1, GONE_FROM, ReplicaState.GONE),
    change(2, 50.0, ReplicaState.RESTARTED, dataclasses.replace(FACTS, max_num_seqs=8)),
]
SAMPLES = [
    sample(number, second + 0.1 * number)
    for second in range(1, SECONDS)
    for number in range(3)
    if number != 1 or second < GONE_FROM
]


def updates(seconds_each: float, *, more: bool = False) -> Sequence[RunUpdate]:
    """The watch in parts of some seconds each; with `more` all ticks arrive before everything else."""
    found, begin = [], 0.0
    while begin < SECONDS:
        end = begin + seconds_each
        first, stop = round(begin / TICK_SECONDS), round(min(end, SECONDS) / TICK_SECONDS)
        ticks = [Tick(client=ClientTick(index=index)) for index in range(first, stop)]
        if more:
            found += [RunUpdate(ticks=ticks, more=True)]
            ticks = []
        samples = [each for each in SAMPLES if begin < each.scrape_end <= end]
        changes = [each for each in CHANGES if begin < each.at <= end]
        found.append(RunUpdate(ticks=ticks, replica_samples=samples, replica_changes=changes))
        begin = end
    return found


LATER = RunUpdate(
    ticks=[Tick(client=ClientTick(index=index)) for index in range(4 * SECONDS, 4 * SECONDS + 40)],
    replica_samples=[sample(number, second + 0.1 * number) for second in range(62, 70) for number in (0, 2)],
)


def merged_rows(*, until: int) -> tuple[list[TickRow], list[SampleRow]]:
    """The watch with rows for ten seconds each until a time, and those of each server; later ones are plain."""
    ticks: list[TickRow] = [
        MergedTick(tick=Tick(client=ClientTick(index=round((second + 10) / TICK_SECONDS) - 1)), count=40, engine=None)
        for second in range(0, until, 10)
    ]
    ticks += [Tick(client=ClientTick(index=each)) for each in range(4 * until, 4 * SECONDS)]
    samples: list[SampleRow] = [each for each in SAMPLES if each.scrape_end > until]
    for number in range(3):
        own = [each for each in SAMPLES if each.replica == number and each.scrape_end <= until]
        for first in range(0, len(own), 10):
            part, before = own[first : first + 10], own[first - 1] if first else None
            samples.append(MergedSample(sample=part[-1], count=len(part), before=before, peaks={"waiting": 25.0}))
    return ticks, sorted(samples, key=lambda row: last_sample(row).scrape_end)


def without_requests(at: float, not_ready: str | None) -> ReplicaChange:
    return dataclasses.replace(change(1, at, ReplicaState.ATTACHED), not_ready=not_ready)


def folded(all_updates: Sequence[RunUpdate], *, keep: int | None = None) -> FleetState:
    state = FleetState(keep=keep)
    for update in all_updates:
        state.fold(update)
    return state


def test_each_server_is_judged_by_the_rules_of_one_and_only_it_is_named() -> None:
    state = folded(updates(1.0))
    calm = state.at(15.0)
    assert {row.state for row in calm.rows} == {"serving"}
    assert calm.rows[0].name == "gpu2", "the one with other flags is first"
    assert calm.rows[0].kind is ReplicaClass.DIFFERS
    assert calm.line == "3 of 3 serve; gpu2 differs: max_num_seqs 8 (16 elsewhere)"
    first, second, third = state.at(35.0).rows
    assert (first.name, first.kind, first.state) == ("gpu0", ReplicaClass.SATURATED, "KV-bound")
    assert abs(first.since - FULL_FROM) <= 1.5
    assert {second.state, third.state} == {"serving"}
    gone = next(row for row in state.at(45.0).rows if row.name == "gpu1")
    assert (gone.kind, gone.state, gone.since) == (ReplicaClass.DEAD, "no response", GONE_FROM)
    restarted = next(row for row in state.at(55.0).rows if row.name == "gpu2")
    assert (restarted.kind, restarted.restarted_at) == (ReplicaClass.RESTARTED, 50.0)
    assert state.at(55.0).rows[0].name == "gpu1", "the dead one is first"


def test_figures_are_those_of_the_last_seconds() -> None:
    row = next(row for row in folded(updates(1.0)).at(15.0).rows if row.name == "gpu1")
    assert (row.running, row.waiting, row.kv, row.version) == (8.0, 0.0, 0.3, "0.11.0")
    assert abs(row.output - 200) < 25


def test_a_replay_shows_the_same_as_the_live_watch() -> None:
    live, replayed, whole = folded(updates(0.5)), folded(updates(SECONDS)), folded(updates(SECONDS, more=True))
    for at in (10.0, 30.0, 45.0, 55.0):
        rows = sorted(live.at(at).rows, key=lambda row: row.number)
        for other in (replayed, whole):
            assert repr(sorted(other.at(at).rows, key=lambda row: row.number)) == repr(rows)


def test_rows_that_stand_for_ten_seconds_show_the_same_as_the_ticks_and_samples_made_from_them() -> None:
    ticks, samples = merged_rows(until=40)
    for keep in (None, 60):
        merged, made = FleetState(keep=keep), FleetState(keep=keep)
        merged.fold(RunUpdate(ticks=TickRows(ticks[:2]), more=True))
        merged.fold(RunUpdate(ticks=TickRows(ticks[2:]), replica_samples=SampleRows(samples), replica_changes=CHANGES))
        made.fold(
            RunUpdate(ticks=list(TickRows(ticks)), replica_samples=list(SampleRows(samples)), replica_changes=CHANGES)
        )
        for state in (merged, made):
            state.fold(LATER)
        for at in (5.0, 15.0, 30.0, 45.0, 59.75, 64.0, 70.0) if keep is None else (59.75, 64.0, 70.0):
            assert repr(merged.at(at).rows) == repr(made.at(at).rows)
            assert merged.at(at).line == made.at(at).line


def test_a_long_watch_keeps_the_last_minutes_and_says_the_same() -> None:
    short, long = folded(updates(1.0), keep=60), folded(updates(1.0))
    for at in (50.0, 59.75):
        assert short.at(at).line == long.at(at).line


def test_a_server_that_is_read_no_more_has_no_metrics() -> None:
    state = FleetState()
    for update in updates(1.0):
        late = [each for each in update.replica_samples if each.replica == 2 or each.scrape_end < 30]
        state.fold(dataclasses.replace(update, replica_samples=late))
    rows = {row.name: row for row in state.at(38.0).rows}
    assert (rows["gpu0"].state, rows["gpu0"].kind) == ("no metrics", ReplicaClass.DEAD)
    assert rows["gpu2"].state == "serving"


def test_the_table_has_the_sums_and_a_row_for_each_server_what_hurts_first() -> None:
    frame = folded(updates(1.0)).at(55.0)
    sums, skew, heading, *rows = ("".join(text for text, _ in row) for row in fleet_rows(frame, 200))
    assert sums.startswith("out ")
    assert skew.startswith("skew waiting ")
    assert heading.split()[:2] == ["server", "state"]
    assert [row.split()[0] for row in rows] == ["gpu1", "gpu2", "gpu0"]
    assert "no response since 0:40" in rows[0]
    assert "max_num_seqs 8 (16 elsewhere)" in rows[1]
    assert rows[2].split()[1:3] == ["KV-bound", "since"]
    assert rows[2].split()[4:7] == ["8", "20", "100"]
    assert all(len("".join(text for text, _ in row)) <= 80 for row in fleet_rows(frame, 80))


def test_the_verdict_of_all_is_that_of_the_worst_with_the_state_of_each() -> None:
    state = folded(updates(1.0))
    assert state.at(15.0).verdict.line.startswith("serving: 3 of 3 serve")
    assert state.at(35.0).verdict.line.startswith("KV-bound: 3 of 3 serve; gpu0 KV-bound since 0:")
    assert state.at(45.0).verdict.line.startswith("no response: 2 of 3 serve; gpu1 no response since 0:40")


def test_a_server_that_was_restarted_hides_no_trouble_of_another_one() -> None:
    full, *others = folded(updates(1.0)).at(35.0).rows
    restarted = [dataclasses.replace(row, kind=ReplicaClass.RESTARTED, restarted_at=30.0) for row in others]
    frame = FleetFrame(at=35.0, rows=(*restarted, full))
    assert frame.verdict.line.startswith("KV-bound: 3 of 3 serve; gpu")
    assert FleetFrame(at=35.0, rows=tuple(restarted)).verdict.line.startswith("serving: 2 of 2 serve; gpu")


def test_a_server_whose_health_page_says_503_drains_until_it_says_200_or_its_metrics_end() -> None:
    state = FleetState(keep=None)
    ready, not_ready = without_requests(45.0, None), without_requests(25.0, "/health: HTTP 503")
    changes = [*CHANGES[:3], not_ready, ready, dataclasses.replace(not_ready, at=50.0)]
    samples = [sample(1, float(second)) for second in range(1, 55)]
    ticks = [Tick(client=ClientTick(index=index)) for index in range(4 * SECONDS)]
    state.fold(
        RunUpdate(
            ticks=ticks, replica_samples=samples, replica_changes=changes, end=RunEnd(at=60.0, exit_code=0, reason="")
        )
    )
    replica = state.replica(1)
    assert replica is not None
    found = {}
    for at in (20.0, 30.0, 48.0, 52.0, 59.0):
        (row,) = (each for each in state.at(at).rows if each.name == "gpu1")
        found[at] = (row.kind, row.state, row.since)
    serving = (ReplicaClass.SERVING, "serving")
    assert [found[20.0][:2], found[48.0][:2]] == [serving, serving]
    assert found[30.0] == (ReplicaClass.DRAINING, "draining", 25.0)
    assert found[52.0] == (ReplicaClass.DRAINING, "draining", 50.0)
    assert found[59.0][:2] == (ReplicaClass.DEAD, "no metrics")
    verdict = replica.verdict(watched_stats(replica.history, 30.0))
    assert verdict.line.startswith("draining: since 0:25, /health: HTTP 503, 8 running")


def test_the_states_alone_are_those_of_the_rows() -> None:
    fleet = FleetState()
    for each in updates(10.0):
        fleet.fold(each)
        rows = {row.number: row for row in fleet.at(fleet.until).rows}
        states = {row.number: row for row in fleet.states_at(fleet.until)}
        assert states.keys() == rows.keys()
        for number, row in rows.items():
            latencies = {name: getattr(states[number], name) for name in ("ttft_p90", "ttft_first_bound", "per_token")}
            without = dataclasses.replace(row, **latencies)
            assert repr(states[number]) == repr(without)  # NaN is not equal to itself


@pytest.mark.parametrize(("servers", "together"), [(2, 4), (7, 4), (8, 8), (19, 8), (20, 12)])
def test_more_ticks_of_many_servers_are_judged_together(servers: int, together: int) -> None:
    assert judged_ticks(servers) == together
    state, judged = FleetState(), []
    changes = [change(number, 0.1, ReplicaState.ATTACHED) for number in range(servers)]
    for index in range(2 * together):
        ticks = [Tick(client=ClientTick(index=index))]
        state.fold(RunUpdate(ticks=ticks, replica_changes=changes if index == 0 else []))
        judged.append(state.until)
    assert sorted(set(judged)) == [0.0, together * TICK_SECONDS, 2 * together * TICK_SECONDS]
