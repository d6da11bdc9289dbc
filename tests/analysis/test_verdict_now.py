"""The verdict of one time: each rule in its situation, and which rule comes first."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.verdict_now import WARM_REQUESTS, verdict_now
from servetop.analysis.engine_gauges import STALE_AFTER, kv_usage
from servetop.analysis.live_stats import LiveStats, Rates, Totals
from servetop.analysis.series.stats_series import StatsSeries
from servetop.analysis.trust.trust import Trust
from servetop.core.events import EngineSample, StageChange
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import LoadGauges

FACTS = EngineFacts(name="vllm", title="vLLM", max_num_seqs=256, managed=True)
SAMPLE = EngineSample(scrape_start=59.9, scrape_end=59.9, running=80, waiting=0, kv_usage=0.5)
KEEPING_UP = Rates(offered=16.0, sent=16.0, completed=16.0, preemptions=0.0)
FALLING_BEHIND = Rates(offered=16.0, sent=16.0, completed=12.0, preemptions=0.0)
STAGE = StageChange(at=10.0, index=0, label="16 req/s", request_rate=16.0, max_concurrency=None, max_num_seqs=256)
_EMPTY: dict[str, Any] = dict.fromkeys(
    (
        "times", "offered", "sent", "completed", "in_flight", "queued", "output_tokens", "prompt_tokens",
        "engine_output_tokens", "kv_usage", "running", "waiting", "preemptions",
    ),
    np.zeros(0),
)  # fmt: skip
SERIES = StatsSeries(latencies={}, stages=np.zeros(0, dtype=np.int64), **_EMPTY)


def stats_of(rates: Rates = KEEPING_UP, **changes: Any) -> LiveStats:
    """The statistics at second 60 of a run with 500 ended requests."""
    given: dict[str, Any] = {
        "load": LoadGauges(stage=0, request_rate=16.0, in_flight=80), "engine": SAMPLE,
        "trust": Trust(slip_p99=0.001, loop_lag_p99=0.001), "totals": Totals(sent=580, completed=500),
    }  # fmt: skip
    return LiveStats(at=60.0, window=10.0, span=60.0, rates=rates, series=SERIES, **given | changes)


def episode(kind: EpisodeKind, begin: float = 50.0, **changes: Any) -> Episode:
    figures: dict[str, Any] = {"worst": 1.0, "worst_at": begin, "batch": 256.0}
    return Episode(kind=kind, begin=begin, detected_at=begin + 1, **figures | changes)


def line_of(stats: LiveStats | None = None, **changes: Any) -> str:
    stats = stats or stats_of()
    given: dict[str, Any] = {"facts": FACTS, "stage": STAGE, "load_since": 10.0, "kv_peak": kv_usage(stats.engine)}
    return verdict_now(Moment(stats=stats, **given | changes)).line


KV = episode(EpisodeKind.KV, fits=192)
PREEMPTING = episode(EpisodeKind.PREEMPTIONS, fits=192)


def test_a_full_cache_with_preemptions_is_kv_bound_with_advice_on_the_batch_size() -> None:
    sample = replace(SAMPLE, running=214, waiting=31, kv_usage=0.997)
    stats = stats_of(replace(FALLING_BEHIND, preemptions=4.0), engine=sample)
    assert line_of(stats, limit=Limit.KV, episodes=(KV, PREEMPTING)) == (
        "KV-bound: up to 99.7 % of blocks, 4.0 preemptions/s, 31 waiting → max_num_seqs ≈ 192 or more KV memory"
    )


def test_the_verdict_stays_while_the_usage_swings() -> None:
    lines = set()
    for usage in (0.05, 0.75, 0.93, 1.0):
        stats = stats_of(FALLING_BEHIND, engine=replace(SAMPLE, kv_usage=usage, waiting=40))
        lines.add(line_of(stats, kv_peak=1.0, limit=Limit.KV, episodes=(KV, PREEMPTING)))
    assert lines == {"KV-bound: up to 100.0 % of blocks, 40 waiting → max_num_seqs ≈ 192 or more KV memory"}


def test_a_cache_that_is_no_longer_full_is_not_given_as_the_evidence() -> None:
    emptied = stats_of(replace(KEEPING_UP, preemptions=0.3), engine=replace(SAMPLE, kv_usage=0.142))
    assert line_of(emptied, limit=Limit.KV, episodes=(KV, PREEMPTING)).startswith(
        "KV-bound: full before, now 14.2 % of blocks, 3 preemptions in the last 10 s, 0 waiting → "
    )


def test_an_engine_that_keeps_up_with_a_nearly_full_cache_needs_no_higher_rate() -> None:
    nearly_full = stats_of(engine=replace(SAMPLE, kv_usage=0.984, waiting=1))
    assert line_of(nearly_full).endswith("KV 98.4 % → hold the load: the KV cache is nearly full")


def test_without_preemptions_a_full_cache_needs_memory() -> None:
    assert line_of(limit=Limit.KV, episodes=(KV,)).endswith(" → more KV memory, or shorter requests")


def test_the_advised_batch_size_is_never_larger_than_the_current_one() -> None:
    large = episode(EpisodeKind.KV, fits=300)
    assert line_of(limit=Limit.KV, episodes=(large, PREEMPTING)).endswith("→ more KV memory, or shorter requests")


def test_a_full_batch_with_free_blocks_needs_a_larger_one() -> None:
    stats = stats_of(FALLING_BEHIND, engine=replace(SAMPLE, running=256, waiting=12, kv_usage=0.6))
    full = episode(EpisodeKind.BATCH)
    assert line_of(stats, limit=Limit.BATCH, episodes=(full,)) == (
        "batch-bound: running 256 of 256, 12 waiting, KV only 60.0 % → raise max_num_seqs"
    )
    stats = stats_of(FALLING_BEHIND, engine=replace(SAMPLE, running=256, waiting=12, kv_usage=0.9))
    assert line_of(stats, limit=Limit.BATCH, episodes=(full,)).endswith(
        "KV 90.0 % → lower the rate: a larger batch would soon fill the KV blocks"
    )


def test_a_queue_with_free_blocks_and_slots_needs_a_lower_rate() -> None:
    stats = stats_of(FALLING_BEHIND, engine=replace(SAMPLE, waiting=146))
    assert line_of(stats, limit=Limit.RATE, episodes=(episode(EpisodeKind.QUEUE),)) == (
        "queue growing: 146 waiting, done 12.0 of 16.0 req/s → lower the rate below 12.0"
    )


def test_more_done_than_offered_is_not_written_as_a_part() -> None:
    stats = stats_of(Rates(offered=4.2, completed=12.3), engine=replace(SAMPLE, waiting=107))
    assert "done 12.3 req/s" in line_of(stats, limit=Limit.RATE, episodes=(episode(EpisodeKind.QUEUE),))


def test_failing_requests_come_first_with_their_reason() -> None:
    stats = stats_of(Rates(offered=15.6, completed=0.0, failed=15.6), trust=Trust(slip_p99=0.3, all_failed=True))
    assert line_of(
        stats, limit=Limit.KV, episodes=(episode(EpisodeKind.FAILING), KV), failure="HTTP 400: too long"
    ) == "failing: 100% of requests, HTTP 400: too long → press s to stop the run"  # fmt: skip


@pytest.mark.parametrize(("begin", "verdict"), [(56.0, "long prompts"), (49.0, "stalled: no token for 11 s")])
def test_the_prefill_of_long_or_many_prompts_takes_seconds_without_a_token(begin: float, verdict: str) -> None:
    stall = episode(EpisodeKind.STALL, begin)
    before, after = (episode(EpisodeKind.QUEUE, begin + seconds) for seconds in (-1, 1))
    assert line_of(limit=Limit.RATE, episodes=(stall, before)).startswith(
        verdict.replace("long prompts", "queue growing")
    )
    assert line_of(limit=Limit.RATE, episodes=(stall, after)).startswith("stalled")
    long = episode(EpisodeKind.LONG_PROMPTS, 30.0)
    assert line_of(limit=Limit.LONG_PROMPTS, episodes=(stall, long)).startswith(verdict)
    assert line_of(limit=Limit.KV, episodes=(stall, KV)).startswith("stalled")


def test_throttled_clocks_stand_beside_what_they_may_cause() -> None:
    throttled, stall = episode(EpisodeKind.THROTTLED, 20.0), episode(EpisodeKind.STALL, 57.0)
    assert line_of(episodes=(stall, throttled)).endswith("the GPU's clocks are throttled")
    assert "the GPU's clocks are throttled" in line_of(limit=Limit.KV, episodes=(KV, throttled))
    assert "throttled" not in line_of(episodes=(throttled,))


def test_an_error_that_ends_the_run_comes_before_everything_else() -> None:
    assert line_of(episodes=(episode(EpisodeKind.FAILING), KV), ended_by="vLLM was killed by SIGKILL") == (
        "run failed: vLLM was killed by SIGKILL → look at the engine's log (5)"
    )
    attached = replace(FACTS, managed=False)
    assert line_of(episodes=(episode(EpisodeKind.STALL),), facts=attached).endswith("→ look at the server's log")


def test_a_late_client_comes_before_the_engine() -> None:
    stats = stats_of(FALLING_BEHIND, trust=Trust(slip_p99=0.25))
    assert line_of(stats, limit=Limit.KV, episodes=(KV,)).startswith("client-bound: requests sent 250 ms late at p99")
    assert line_of(episodes=(episode(EpisodeKind.CLIENT),)).startswith("client-bound: requests were sent late")


def test_a_client_whose_lateness_is_little_of_ttft_comes_after_the_engine() -> None:
    stats = stats_of(FALLING_BEHIND, trust=Trust(slip_p99=0.25, ttft_p99=4.0))
    line = line_of(stats, limit=Limit.KV, episodes=(KV,))
    assert line.startswith("KV-bound: ")
    assert ", the client was late too → " in line


def test_other_clients_of_an_attached_server_come_before_a_late_client() -> None:
    stats = stats_of(KEEPING_UP, trust=Trust(slip_p99=0.25, in_flight=2.0, littles_law_error=5.0, token_error=9.0))
    line = line_of(stats, facts=replace(FACTS, managed=False))
    assert line == (
        "other traffic: about 10 of 12 requests in the engine are not from this run → measure a server that no other "
        "client uses: its queue and its tokens are in these figures"
    )
    assert line_of(stats, facts=replace(FACTS, managed=True)).startswith("client-bound")


@pytest.mark.parametrize(
    ("changes", "rates", "expected"),
    [
        ({"load": LoadGauges(stage=0, request_rate=None, in_flight=7)}, KEEPING_UP, Bottleneck.DRAINING),
        ({"load": LoadGauges(stage=0), "engine": replace(SAMPLE, scrape_end=48.0)}, KEEPING_UP, Bottleneck.RESTARTING),
        ({"load": LoadGauges(stage=0)}, KEEPING_UP, Bottleneck.IDLE),
        ({"load": LoadGauges(stage=0, request_rate=16.0, paused=True)}, KEEPING_UP, Bottleneck.PAUSED),
        ({"load": LoadGauges(stage=0, request_rate=16.0)}, Rates(offered=0.0), Bottleneck.IDLE),
        ({"totals": Totals(sent=40, completed=0)}, KEEPING_UP, Bottleneck.WARMING_UP),
        ({"totals": Totals(sent=40, completed=WARM_REQUESTS)}, KEEPING_UP, Bottleneck.HEADROOM),
    ],
)
def test_states_of_the_load(changes: dict[str, Any], rates: Rates, expected: Bottleneck) -> None:
    found = verdict_now(Moment(stats=stats_of(rates, **changes), facts=FACTS, stage=STAGE, load_since=10.0))
    assert found.bottleneck is expected


def test_the_first_seconds_are_warming_up_until_enough_requests_ended() -> None:
    few = stats_of(totals=Totals(sent=40, completed=9))
    assert line_of(few, load_since=55.0) == "warming up: 9 of the 30 requests that a verdict needs"
    assert line_of(few, load_since=45.0).startswith("headroom")
    assert line_of(stage=replace(STAGE, warmup=True)).startswith("warming up")
    assert line_of(stage=None) == "starting: the engine is loading"


def test_a_restart_lasts_from_the_end_of_the_drain_and_then_the_engine_warms_up_again() -> None:
    stopped = stats_of(Rates(offered=0.0), load=LoadGauges(stage=0))
    assert line_of(stopped, restarting=True) == "restarting: the engine restarts"
    stale = replace(stopped, engine=replace(SAMPLE, scrape_end=48.0))
    assert line_of(stale, restarting=True) == "restarting: the engine restarts, no metrics for 12 s"
    draining = stats_of(load=LoadGauges(stage=0, in_flight=7))
    assert line_of(draining, restarting=True).startswith("draining: 7 in flight")
    assert line_of(restarted_at=58.8) == "warming up: the engine restarted 1 s ago"
    idle = stats_of(Rates(offered=0.0), load=LoadGauges(stage=0, request_rate=0.5))
    assert line_of(idle, restarted_at=59.9) == "warming up: the engine restarted 0 s ago"
    assert line_of(restarted_at=50.0).startswith("headroom")


def test_a_load_that_has_sent_nothing_yet_is_not_idle() -> None:
    started = stats_of(Rates(offered=0.0), load=LoadGauges(stage=0, request_rate=16.0), totals=Totals())
    assert line_of(started, load_since=59.5) == "warming up: 0 of the 30 requests that a verdict needs"


def test_requests_queued_at_the_client_are_concurrency_limited() -> None:
    load = LoadGauges(stage=0, request_rate=16.0, max_concurrency=64, in_flight=64, queued=210)
    assert line_of(stats_of(FALLING_BEHIND, load=load, trust=Trust(slip_p99=0.001, limited=True))) == (
        "concurrency-limited: 210 requests queued at the client, limit 64 in flight → raise the concurrency limit"
    )


def test_requests_kept_at_the_client_are_no_reason_to_lower_the_rate() -> None:
    queue = episode(EpisodeKind.QUEUE)
    limited = LoadGauges(stage=0, request_rate=16.0, max_concurrency=17, in_flight=17, queued=28)
    assert line_of(stats_of(FALLING_BEHIND, load=limited), limit=Limit.RATE, episodes=(queue,)).startswith(
        "concurrency-limited: 28 requests queued at the client"
    )
    closed = LoadGauges(stage=0, request_rate=math.inf, max_concurrency=17, in_flight=17)
    assert line_of(stats_of(load=closed), limit=Limit.RATE, episodes=(queue,)).startswith("headroom")
    unknown = stats_of(load=closed, engine=replace(SAMPLE, waiting=None))
    assert line_of(unknown, limit=Limit.RATE, episodes=(queue,)).endswith("→ lower the concurrency limit")


def test_a_load_that_still_fills_the_batch_is_not_to_be_raised() -> None:
    assert line_of(stats_of(FALLING_BEHIND), growth=60) == (
        "settling: 80 in flight, up by 60 within 5 s, KV 50.0 % → "
        "hold the load until as many requests complete as arrive"
    )
    assert line_of(stats_of(FALLING_BEHIND), growth=30) == (
        "unclear: 0 waiting, done 12.0 of 16.0 req/s → hold this stage until it is steady"
    )


def test_requests_that_piled_up_in_the_batch_are_no_headroom() -> None:
    assert line_of().startswith("headroom")
    assert line_of(overloaded_before=True).startswith("unclear")


def test_an_engine_that_keeps_up_has_headroom() -> None:
    assert line_of() == "headroom: the engine keeps up, done 16.0 of 16.0 req/s, KV 50.0 % → raise the rate"
    closed = LoadGauges(stage=0, request_rate=math.inf, max_concurrency=24, in_flight=24)
    assert line_of(stats_of(load=closed)).endswith("raise the concurrency limit")


def test_without_the_engines_queue_only_throughput_can_show_headroom() -> None:
    bare = replace(SAMPLE, waiting=None)
    assert line_of(stats_of(engine=bare)).startswith("headroom")
    assert line_of(stats_of(FALLING_BEHIND, engine=bare)) == (
        "unclear: the engine does not export its queue, done 12.0 of 16.0 req/s → hold this stage until it is steady"
    )
    stale = replace(SAMPLE, scrape_end=60.0 - STALE_AFTER - 1)
    assert line_of(stats_of(FALLING_BEHIND, engine=stale)).startswith(
        "unclear: the engine's newest sample is 2.5 s old"
    )


numbers = st.one_of(st.none(), st.floats(0, 1e6, allow_nan=False))
kinds = st.lists(st.sampled_from(EpisodeKind), unique=True)


@given(
    running=numbers, waiting=numbers, kv=st.one_of(st.none(), st.floats(0, 1)), offered=st.floats(0, 1e5),
    kinds=kinds, limit=st.one_of(st.none(), st.sampled_from(Limit)),
)  # fmt: skip
def test_any_statistics_give_one_verdict_on_one_line(
    running: float | None, waiting: float | None, kv: float | None, offered: float, kinds: list[EpisodeKind],
    limit: Limit | None,
) -> None:  # fmt: skip
    rates = Rates(offered=offered, completed=offered / 2, preemptions=math.nan)
    sample = replace(SAMPLE, running=running, waiting=waiting, kv_usage=kv)
    episodes = tuple(map(episode, kinds))
    found = verdict_now(
        Moment(stats=stats_of(rates, engine=sample), facts=None, stage=STAGE, episodes=episodes, limit=limit)
    )
    assert isinstance(found, Diagnosis)
    assert "\n" not in found.line
    assert "nan" not in found.line
