"""The story of golden runs and of small ones: cause before effect, and advice at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.diagnosis.run_verdict import RunCause
from servetop.analysis.diagnosis.story_line import LineKind
from servetop.analysis.diagnosis.wording import seconds as duration
from servetop.analysis.story.story import Story
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.errors import ExitCode
from servetop.core.events import Note, RunEnd, Severity
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.text.formats import clock
from servetop.core.tick import ClientTick, Tick
from tests.analysis.story_runs import QUEUE, SLOTS, ramp, recorded, story_from


def test_the_batch_of_the_whitepapers_first_cell_is_too_small() -> None:
    story = recorded("whitepaper.servetop")
    assert story.verdict.cause is RunCause.BATCH
    assert story.headline.startswith("batch-bound from 0:03 at 32.0 req/s: TTFT p99 up to 11 s as felt")
    assert (story.lines[0].at, story.lines[0].known_at) == (3.0, 5.0)
    assert story.lines[0].text == "the batch of 64 is full at 32.0 req/s"
    assert "the batch size changes: max_num_seqs 64 → 256" in [line.text for line in story.lines]
    assert story.lines[-1].advice


def test_a_real_vllm_that_preempts_is_kv_bound() -> None:
    story = recorded("vllm.servetop")
    assert story.verdict.cause is RunCause.KV
    assert "116 preemptions" in story.headline


def test_an_engine_that_was_killed_is_the_whole_story() -> None:
    story = recorded("dies.servetop")
    assert story.verdict.cause is RunCause.ENGINE_FAILED
    assert any("SIGKILL" in line.text for line in story.lines)


def test_without_metrics_a_light_load_is_kept_up_with() -> None:
    story = recorded("without_metrics.servetop")
    assert story.verdict.cause is RunCause.HEADROOM
    assert story.headline == "headroom: TTFT p99 up to 52.2 ms as felt"  # too short for a rate


def test_an_overload_is_described_from_its_cause_to_what_to_try() -> None:
    story = story_from(ramp(waiting=QUEUE[5:-5], kv=0.99, running=SLOTS), goodput={"ttft": 0.5})
    assert story.verdict.cause is RunCause.KV
    assert (story.verdict.onset_rate, story.verdict.preemptions) == (12.0, 116.0)
    texts = [line.text for line in story.lines]
    assert texts[0] == "the KV cache fills at 12.0 req/s: its 500 blocks hold about 36 sequences"
    assert texts[1].startswith("first preemption; 116 in all")
    assert texts[2].startswith("the queue grows, to 116 requests")
    times = [line.at for line in story.lines if line.at is not None]
    assert times == sorted(times)
    assert story.verdict.capacity is not None
    assert story.verdict.capacity.rate == pytest.approx(12.0)
    assert story.verdict.sustainable is not None
    assert 8 < story.verdict.sustainable < 12
    assert story.verdict.sustainable_range is not None
    low, high = story.verdict.sustainable_range
    rates = f"{low:.3g} to {high:.3g} req/s with TTFT ≤ 500 ms"
    assert texts[-1] == f"sustainable {rates}; try max_num_seqs 32 or more KV memory"


def test_an_overload_of_the_cache_begins_with_its_preemptions() -> None:
    preempting = [
        replace(tick, engine=replace(tick.engine, waiting=0.0))
        for tick in ramp(waiting=[1.0] * 20, kv=0.99)
        if tick.engine is not None
    ]
    later = ramp(waiting=[*[1.0] * 20, *(float(4 * second) for second in range(10, 30))], kv=0.99)[80:]
    calm = ramp(waiting=[0.0] * 20)
    ticks = [
        replace(tick, client=replace(tick.client, index=index))
        for index, tick in enumerate([*calm, *preempting, *later])
    ]
    story = story_from(ticks)
    assert story.verdict.onset == story.lines[0].at == 20.0
    assert [line.at for line in story.lines if line.text.startswith("the queue grows")] == [40.0]


def test_a_restart_of_the_engine_takes_the_place_of_the_least_important_line() -> None:
    restart = Note(at=60.0, severity=Severity.INFO, source="engine", text="max_num_seqs 64 → 32: restarting the engine")
    texts = [line.text for line in story_from(ramp(waiting=QUEUE, kv=0.99, running=SLOTS), notes=[restart]).lines]
    assert len(texts) == 6
    assert texts[-2] == "the engine restarts with another batch size: max_num_seqs 64 → 32"
    assert not any(text.startswith("first preemption") for text in texts)


def test_a_queue_with_free_blocks_and_slots_is_a_rate_above_the_capacity() -> None:
    slow = [
        replace(tick, client=replace(tick.client, ok=2)) if tick.engine and tick.engine.waiting else tick
        for tick in ramp(waiting=QUEUE)
    ]
    story = story_from(slow)
    assert story.verdict.cause is RunCause.RATE
    assert story.lines[-1].text == "sustainable ≈ 12 req/s; try a lower rate or more replicas"


def test_a_full_batch_is_doubled_as_far_as_the_blocks_allow() -> None:
    story = story_from(ramp(waiting=QUEUE, running=64, kv=0.2))
    assert story.verdict.cause is RunCause.BATCH
    assert story.verdict.advised_batch == 256
    assert story.lines[0].text == "the batch of 64 is full at 12.0 req/s"


def test_a_run_that_keeps_up_sustains_at_least_its_rate() -> None:
    story = story_from(ramp(waiting=[0.0] * 40), goodput={"ttft": 0.5})
    assert story.headline == "headroom: TTFT p99 up to 50.4 ms as felt; sustainable ≥ 12 req/s with TTFT ≤ 500 ms"
    assert 4 <= len(story.lines) <= 6


def test_a_short_queue_or_a_short_stage_is_no_proof_that_the_engine_keeps_up() -> None:
    def claim(waiting: list[float]) -> str:
        return next(line.text for line in story_from(ramp(waiting=waiting)).lines if line.kind is LineKind.CAUSE)

    assert claim([0.0] * 40) == "no queue, no failure: the engine kept up with the whole load"
    assert claim([0.0] * 20 + [30.0] + [0.0] * 20).startswith(
        "no queue that lasted, at most 30 waiting, no failure: the"
    )
    assert claim([0.0] * 9).endswith(": no stage lasted 10 s: too short to tell whether the engine keeps up")


@pytest.mark.parametrize(
    ("waiting", "advice"), [([0.0] * 40, "look at the server's log"), ([], "start the server, or correct --url")]
)
def test_the_log_of_a_server_that_runs_elsewhere_is_not_referred_to(waiting: list[float], advice: str) -> None:
    config = RunConfig(engine=EngineConfig(name="vllm", model="m", url="http://gpu7:8000"))
    end = RunEnd(at=40.0, exit_code=int(ExitCode.ENGINE_FAILED), reason="nothing answers")
    ticks = [*[Tick(client=ClientTick(index=0))], *ramp(waiting=waiting)[1:]]
    header = RunHeader(config=config, anchor=ClockAnchor(0, 0.0))
    assert story_from(ticks, end=end, header=header).lines[-1].text == advice


def test_one_shorter_overload_is_described_and_several_are_listed() -> None:
    short, calm = [30.0] * 8, [0.0] * 20
    one = story_from(ramp(waiting=[*calm, *short, *QUEUE]))
    assert (20.0, "a shorter overload, for 8.0 s: rate above capacity") in [(line.at, line.text) for line in one.lines]
    two = story_from(ramp(waiting=[*calm, *short, *calm, *short, *QUEUE]))
    assert "2 shorter overloads, from 0:20, 0:48" in [line.text for line in two.lines]


def test_a_missed_objective_is_not_claimed_as_kept() -> None:
    story = story_from(ramp(waiting=[0.0] * 40), goodput={"ttft": 0.01})
    assert story.verdict.cause is RunCause.MISSED
    assert story.verdict.sustainable is None
    assert "sustainable" not in story.headline
    assert "only 0% of the requests had TTFT ≤ 10 ms" in [line.text for line in story.lines]
    assert story.lines[-1].text == "try a lower rate, to see whether the load is the cause"


def test_a_rate_counts_as_sustained_from_twenty_steady_seconds_on() -> None:
    assert story_from(ramp(waiting=[0.0] * 19)).verdict.sustainable is None
    assert story_from(ramp(waiting=[0.0] * 30)).verdict.sustainable == 12.0


def test_failing_requests_are_described_with_their_reason() -> None:
    note = Note(at=1.0, severity=Severity.WARNING, source="load", text="HTTP 400: the KV cache holds 80 tokens")
    story = story_from(ramp(waiting=[0.0] * 40, failed=3), notes=(note,))
    assert story.verdict.cause is RunCause.FAILING
    assert story.headline.endswith("480 of 480 requests failed, TTFT p99 up to 50.4 ms as felt")
    assert "HTTP 400: the KV cache holds 80 tokens" in story.lines[0].text
    assert story.lines[-1].text == "try shorter requests, or more KV memory"


def test_a_late_client_is_the_cause_of_what_it_measured() -> None:
    story = story_from(ramp(waiting=[0.0] * 40, late=1))
    assert story.verdict.cause is RunCause.CLIENT
    assert "up to 33% of requests are late" in " ".join(line.text for line in story.lines)


def test_a_client_whose_lateness_is_little_of_ttft_comes_after_the_overload_of_the_engine() -> None:
    """Requests wait for seconds; the client sends some of them 0.4 s late."""
    story = story_from(ramp(waiting=QUEUE, kv=0.99, running=SLOTS, late=1))
    assert story.verdict.cause is RunCause.KV
    assert story.verdict.client_late
    assert story.headline.startswith("KV-bound from ")
    assert "the client was late too" in story.headline


def test_a_client_whose_lateness_is_most_of_ttft_comes_before_an_overload() -> None:
    ticks = [
        replace(tick, client=replace(tick.client, slip=LogHistogram.of([8.0] * 3)))
        for tick in ramp(waiting=QUEUE, kv=0.99, running=SLOTS)
    ]
    assert story_from(ticks).verdict.cause is RunCause.CLIENT


def test_a_client_that_trust_does_not_find_late_is_no_cause() -> None:
    """For twenty seconds 3 % of the requests are late, which is less than 1 % of those of the run."""
    ticks = ramp(waiting=[0.0] * 100)
    late = [
        replace(tick, client=replace(tick.client, slip=LogHistogram.of([0.4, 0.001, 0.001])))
        if tick.client.index in range(40, 130, 10)
        else tick
        for tick in ticks
    ]
    assert story_from(late).verdict.cause is RunCause.HEADROOM


def shared(*, managed: bool) -> Story:
    """A run whose engine serves ten others for each of its own two requests, and ten tokens for each of its own."""
    ticks = [
        replace(
            tick,
            client=replace(tick.client, gauges=replace(tick.client.gauges, in_flight=2)),
            engine=tick.engine and replace(tick.engine, running=8, waiting=4, generation_tokens_total=1500.0 * index),
        )
        for index, tick in enumerate(ramp(waiting=[0.0] * 40, late=1))
    ]
    config = RunConfig(engine=EngineConfig(name="vllm", url=None if managed else "http://gpu7:8000"))
    facts = EngineFacts(name="vllm", title="vLLM", max_num_seqs=64, managed=managed)
    return story_from(ticks, header=RunHeader(config=config, anchor=ClockAnchor(0, 0.0), engine=facts))


def test_other_clients_of_a_server_come_before_a_late_client() -> None:
    story = shared(managed=False)
    assert story.verdict.cause is RunCause.OTHERS
    assert story.headline.startswith("other traffic: about 10 of 12 requests in the engine are not from this run")
    assert story.lines[-1].text == "try a server that no other client uses"


def test_an_engine_of_ones_own_has_no_other_clients() -> None:
    assert shared(managed=True).verdict.cause is RunCause.CLIENT


def test_an_engine_that_failed_comes_before_everything_else() -> None:
    end = RunEnd(at=40.0, exit_code=int(ExitCode.ENGINE_FAILED), reason="vLLM exited with code 1")
    story = story_from(ramp(waiting=QUEUE, kv=0.99), end=end)
    assert story.verdict.cause is RunCause.ENGINE_FAILED
    assert story.verdict.onset == 40.0


def test_an_engine_failed_when_that_was_noted_not_when_the_run_ended() -> None:
    killed = Note(at=35.0, severity=Severity.ERROR, source="run", text="vLLM was killed by SIGKILL")
    end = RunEnd(at=40.0, exit_code=int(ExitCode.ENGINE_FAILED), reason=killed.text)
    story = story_from(ramp(waiting=[0.0] * 140), end=end, notes=[killed])
    assert story.headline == "engine failed at 0:35: vLLM was killed by SIGKILL"


def test_an_engine_failed_when_its_requests_began_to_fail() -> None:
    ticks = [*ramp(waiting=[0.0] * 38), *ramp(waiting=[0.0] * 40, failed=3)[-8:]]
    killed = Note(at=39.6, severity=Severity.ERROR, source="run", text="vLLM was killed by SIGKILL")
    end = RunEnd(at=45.0, exit_code=int(ExitCode.ENGINE_FAILED), reason=killed.text)
    story = story_from(ticks, end=end, notes=[killed])
    assert story.headline == "engine failed at 0:38: vLLM was killed by SIGKILL"
    assert [(line.at, line.known_at) for line in story.lines if "failed:" in line.text] == [(38.0, 39.6)]


def test_a_run_without_a_load_says_so() -> None:
    story = story_from(ramp(waiting=[0.0] * 4), stages=())
    assert story.headline == "no load"


seconds_of_load = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 40.0, 200.0]), st.sampled_from([0.2, 0.93, 0.99]), st.integers(0, 3)),
    max_size=40,
)


@given(seconds_of_load, st.booleans(), st.sampled_from([None, 0.01, 0.5]), st.integers(0, 400))
def test_any_run_has_a_story(
    load: list[tuple[float, float, int]], staged: bool, objective: float | None, kept: int
) -> None:
    ticks = [
        replace(tick, client=replace(tick.client, index=4 * number + tick.client.index))
        for number, (waiting, kv, failed) in enumerate(load)
        for tick in ramp(waiting=[waiting], kv=kv, running=36, failed=failed)
    ]
    changes: dict[str, Any] = {} if staged else {"stages": ()}
    story = story_from(
        [*ramp(waiting=[0.0])[:1], *ticks[:kept]][: kept + 1],
        goodput={} if objective is None else {"ttft": objective},
        **changes,
    )
    assert 1 <= len(story.lines) <= 6
    assert "nan" not in f"{story.headline} {story.lines}"
    assert story.lines[-1].advice


@pytest.mark.parametrize(("value", "text"), [(0.0981, "98.1 ms"), (3.42, "3.4 s"), (17.2, "17 s")])
def test_durations(value: float, text: str) -> None:
    assert duration(value) == text


def test_clock_times() -> None:
    assert (clock(5), clock(65.9), clock(3605)) == ("0:05", "1:05", "1:00:05")
