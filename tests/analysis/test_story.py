"""The story of golden runs and of small ones: cause before effect, and advice at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.judgement.episode_fold import EpisodeFold
from servetop.analysis.judgement.run_record import RunRecord
from servetop.analysis.judgement.run_verdict import RunCause, run_verdict
from servetop.analysis.judgement.story import Story, story_of
from servetop.analysis.judgement.wording import clock
from servetop.analysis.judgement.wording import seconds as duration
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.errors import ExitCode
from servetop.core.events import EngineSample, Note, RunEnd, Severity, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader

GOLDEN = Path(__file__).parents[1] / "golden"
BLOCKS, SLOTS, LENGTH = 500, 36, 50
"""A server of 500 KV blocks that hold 36 sequences; each request has 50 output tokens."""


def recorded(name: str) -> Story:
    reader = RecordingReader.open(GOLDEN / name)
    try:
        reader.refresh()
        history, fold = TickHistory(reader.ticks()), EpisodeFold()
        fold.update(history, reader.header.engine)
        run = RunRecord(
            header=reader.header, history=history, episodes=fold.episodes, stages=reader.stages(),
            notes=reader.notes(), end=reader.end,
        )  # fmt: skip
        return story_of(run, run_verdict(run))
    finally:
        reader.close()


def test_the_batch_of_the_whitepapers_first_cell_is_too_small() -> None:
    story = recorded("whitepaper.servetop")
    assert story.verdict.cause is RunCause.BATCH
    assert story.headline.startswith("batch-bound from 0:03 at 32.0 req/s: 123 preemptions, TTFT p99 11 s")
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
    assert story.headline.endswith("sustainable ≥ 2 req/s")


def ramp(
    *, waiting: Sequence[float], kv: float = 0.5, running: float = 20, failed: int = 0, late: int = 0
) -> list[Tick]:
    """One second per entry of `waiting`, at 12 requests/s, of a server with the given figures while requests wait."""
    ticks, preempted = [], 0.0
    for index in range(4 * len(waiting)):
        queue = waiting[index // 4]
        preempted += 1 if queue and kv > 0.9 else 0
        sample = EngineSample(
            scrape_start=index / 4, scrape_end=index / 4 + 0.2, running=running if queue else 10, waiting=queue,
            kv_usage=kv if queue else 0.3, preemptions_total=preempted, max_num_seqs=64,
        )  # fmt: skip
        wait = 0.05 + queue / 12
        client = ClientTick(
            index=index, due=3, sent=3, ok=3 - failed, errors=failed, output_tokens=3 * LENGTH, prompt_tokens=300,
            gauges=LoadGauges(stage=0, request_rate=12.0, in_flight=int(running + queue)),
            ttft=LogHistogram.of([wait] * 3), ttft_due=LogHistogram.of([wait] * 3),
            itl=LogHistogram.of([0.02] * 150), output_len=LogHistogram.of([LENGTH] * 3),
            slip=LogHistogram.of([0.4] * late + [0.001] * (3 - late)),
        )  # fmt: skip
        ticks.append(Tick(client=client, engine=sample))
    return ticks


def story_from(ticks: list[Tick], *, goodput: dict[str, float] | None = None, **changes: Any) -> Story:
    facts = EngineFacts(name="vllm", title="vLLM", max_num_seqs=64, kv_blocks_total=BLOCKS)
    config = RunConfig(engine=EngineConfig(name="vllm", model="m"), goodput=goodput or {})
    history, fold = TickHistory(ticks), EpisodeFold()
    fold.update(history, facts)
    stage = StageChange(at=0.0, index=0, label="", request_rate=12.0, max_concurrency=None, max_num_seqs=64)
    run = RunRecord(
        header=RunHeader(config=config, anchor=ClockAnchor(0, 0.0), engine=facts), history=history,
        episodes=fold.episodes, stages=(stage,), end=RunEnd(at=ticks[-1].end, exit_code=0, reason=""),
    )  # fmt: skip
    run = replace(run, **changes)
    return story_of(run, run_verdict(run))


QUEUE = [0.0] * 20 + [float(4 * second) for second in range(30)] + [0.0] * 20


def test_an_overload_is_described_from_its_cause_to_what_to_try() -> None:
    story = story_from(ramp(waiting=QUEUE, kv=0.99, running=SLOTS), goodput={"ttft": 0.5})
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
    rate = f"{story.verdict.sustainable:.3g} req/s with TTFT ≤ 500 ms"
    assert texts[-1] == f"sustainable ≈ {rate}; try max_num_seqs 32 or more KV memory"


def test_a_restart_of_the_engine_takes_the_place_of_the_least_important_line() -> None:
    restart = Note(at=60.0, severity=Severity.INFO, source="engine", text="max_num_seqs 64 → 32: restarting the engine")
    texts = [line.text for line in story_from(ramp(waiting=QUEUE, kv=0.99, running=SLOTS), notes=[restart]).lines]
    assert len(texts) == 6
    assert texts[-2] == "the engine restarts with another batch size: max_num_seqs 64 → 32"
    assert not any(text.startswith("first preemption") for text in texts)


def test_a_queue_with_free_blocks_and_slots_is_a_rate_above_the_capacity() -> None:
    story = story_from(ramp(waiting=QUEUE))
    assert story.verdict.cause is RunCause.RATE
    assert story.lines[-1].text == "sustainable ≈ 12 req/s; try a lower rate or more replicas"


def test_a_full_batch_is_doubled_as_far_as_the_blocks_allow() -> None:
    story = story_from(ramp(waiting=QUEUE, running=64, kv=0.2))
    assert story.verdict.cause is RunCause.BATCH
    assert story.verdict.advised_batch == 256
    assert story.lines[0].text == "the batch of 64 is full at 12.0 req/s"


def test_a_run_that_keeps_up_sustains_at_least_its_rate() -> None:
    story = story_from(ramp(waiting=[0.0] * 40), goodput={"ttft": 0.5})
    assert story.headline == "headroom: TTFT p99 50.4 ms; sustainable ≥ 12 req/s with TTFT ≤ 500 ms"
    assert 4 <= len(story.lines) <= 6


def test_a_missed_objective_is_not_claimed_as_kept() -> None:
    story = story_from(ramp(waiting=[0.0] * 40), goodput={"ttft": 0.01})
    assert story.verdict.cause is RunCause.HEADROOM
    assert story.verdict.sustainable is None
    assert "sustainable" not in story.headline
    assert "only 0% of the requests had TTFT ≤ 10 ms" in [line.text for line in story.lines]
    assert story.lines[-1].text == "try a lower rate, or an objective that an idle engine keeps"


def test_a_rate_counts_as_sustained_from_ten_seconds_on() -> None:
    assert story_from(ramp(waiting=[0.0] * 9)).verdict.sustainable is None
    assert story_from(ramp(waiting=[0.0] * 10)).verdict.sustainable == 12.0


def test_failing_requests_are_described_with_their_reason() -> None:
    note = Note(at=1.0, severity=Severity.WARNING, source="load", text="HTTP 400: the KV cache holds 80 tokens")
    story = story_from(ramp(waiting=[0.0] * 40, failed=3), notes=(note,))
    assert story.verdict.cause is RunCause.FAILING
    assert story.headline.endswith("480 of 480 requests failed, TTFT p99 50.4 ms")
    assert "HTTP 400: the KV cache holds 80 tokens" in story.lines[0].text
    assert story.lines[-1].text == "try shorter requests, or more KV memory"


def test_a_late_client_is_the_cause_of_what_it_measured() -> None:
    story = story_from(ramp(waiting=[0.0] * 40, late=1))
    assert story.verdict.cause is RunCause.CLIENT
    assert "up to 33% of requests are late" in " ".join(line.text for line in story.lines)


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
