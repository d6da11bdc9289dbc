"""Server metrics in the summary: counters, gauges and prefix cache of the run and of each stage."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.events import EngineSample, RequestRecord, RunEnd
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import sample, stage

MakeRequest = Callable[..., RequestRecord]
Summarise = Callable[..., dict[str, Any]]


def test_server_counters_are_relative_to_the_first_scrape_and_survive_a_restart(summary_of: Summarise) -> None:
    totals = [100.0, 103.0, None, 110.0, 2.0, 5.0]  # attached at 100; restarted between 110 and 2
    samples = [sample(float(i), preemptions_total=value, kv_usage=0.1 * i) for i, value in enumerate(totals)]
    server = summary_of(samples=samples)["server"]
    assert server["preemptions"] == 15.0
    assert server["max_kv_usage"] == pytest.approx(0.5)
    assert (server["max_running"], server["generation_tokens"]) == (None, None)


def test_prefix_cache_hits_are_of_the_run_and_of_each_stage(summary_of: Summarise, make_request: MakeRequest) -> None:
    samples = [
        sample(float(at), prefix_cache_hits_total=float(hits), prefix_cache_queries_total=float(queries))
        for at, hits, queries in ((0, 390, 10_000), (2, 390, 10_100), (4, 450, 10_200))
    ]
    stages = [stage(0, 1.0, rate=8.0), stage(1, 3.0, rate=16.0)]
    summary = summary_of(make_request(1, 1.5), make_request(2, 3.5, stage=1), samples=samples, stages=stages)
    keys = ("prefix_cache_hits", "prefix_cache_queries", "prefix_cache_hit_rate")
    assert [summary["server"][key] for key in keys] == [60.0, 200.0, 0.3]
    assert [each["server"]["prefix_cache_hit_rate"] for each in summary["stages"]] == [0.0, 0.6]


def test_a_cache_without_queries_has_no_hit_rate(summary_of: Summarise) -> None:
    samples = [sample(float(at), prefix_cache_hits_total=9.0, prefix_cache_queries_total=90.0) for at in range(3)]
    server = summary_of(samples=samples)["server"]
    assert (server["prefix_cache_queries"], server["prefix_cache_hit_rate"]) == (0.0, None)


def test_the_stages_preemptions_add_up_to_the_runs(summary_of: Summarise, make_request: MakeRequest) -> None:
    samples = [sample(0.5 * i, preemptions_total=float(i * i), running=float(i)) for i in range(12)]
    summary = summary_of(
        make_request(1, 1.5),
        make_request(2, 3.5, stage=1),
        samples=samples,
        stages=[
            stage(0, 0.0, rate=None, label="boot"),
            stage(0, 1.0, rate=8.0, max_num_seqs=64),
            stage(1, 2.9, rate=None, label="restart"),
            stage(1, 3.0, rate=16.0, max_num_seqs=128),
        ],
    )
    first, second = summary["stages"]
    assert (first["stage"], first["start"], first["end"], first["request_rate"]) == (0, 1.0, 2.9, 8.0)
    assert (second["stage"], second["start"], second["end"], second["max_num_seqs"]) == (1, 3.0, 20.0, 128)
    assert (first["preemptions"], second["preemptions"]) == (25 - 1, 121 - 25)  # 1 happened during boot
    assert summary["server"]["preemptions"] == 24 + 96
    assert (first["num_prompts"], second["num_prompts"]) == (1, 1)
    assert first["server"]["max_running"] == 5.0
    assert (summary["request_rate"], summary["max_concurrency"]) == (None, None)


def test_an_absurd_metric_value_does_not_affect_other_metrics(tmp_path: Path, header: RunHeader) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    absurd = [sample(at, running=1e308, generation_tokens_total=1e308 * (at > 1.0), waiting=2.0) for at in (1.0, 2.0)]
    recorder.commit(TickTransaction(engine_samples=[*absurd, sample(3.0, running=4.0, waiting=1.0)]))
    with closing(RecordingReader.open(recorder.path)) as reader:
        server = summary_json(run_summary(reader))["server"]
    recorder.close(RunEnd(at=3.0, exit_code=0, reason=""))
    assert (server["max_running"], server["max_waiting"]) == (4.0, 2.0)
    assert server["generation_tokens"] == 0.0


BUSY = (
    "the engine's metrics were not scraped while requests were in flight, for 1 s",
    dict.fromkeys(("max_running", "max_waiting", "max_kv_usage")),
)


def idle(at: float, tokens: float) -> EngineSample:
    """A scrape of an engine that has no requests."""
    return sample(at, running=0.0, waiting=0.0, kv_usage=0.0, generation_tokens_total=tokens)


def test_metrics_without_a_scrape_under_load_are_unknown(summary_of: Summarise, make_request: MakeRequest) -> None:
    samples = [idle(0.5, 0.0), idle(2.5, 20.0), idle(3.5, 20.0), idle(3.9, 20.0)]
    requests = [make_request(1, 1.0, tokens_at=[0.5, 1.0]), make_request(2, 4.0, tokens_at=[0.5, 1.0], stage=1)]
    stages = [stage(0, 0.0), stage(1, 3.0)]
    summary = summary_of(*requests, samples=samples, stages=stages)
    first, second = (each["server"] for each in summary["stages"])
    reason, peaks = BUSY
    assert (first["peaks_reason"], second["peaks_reason"]) == (reason, reason)
    assert first == first | peaks
    assert second == second | peaks
    assert first["generation_tokens"] == 20.0, "a scrape after the load knows what was counted in it"
    assert second["generation_tokens"] is None, "no scrape followed the load"
    assert summary["server"]["peaks_reason"].endswith("for 4 s")


def test_one_scrape_in_the_load_is_enough_for_its_peaks(summary_of: Summarise, make_request: MakeRequest) -> None:
    samples = [idle(0.5, 0.0), sample(1.5, running=1.0), idle(2.5, 20.0)]
    server = summary_of(make_request(1, 1.0, tokens_at=[0.5, 1.0]), samples=samples)["server"]
    assert (server["max_running"], server["max_kv_usage"], server["peaks_reason"]) == (1.0, 0.0, None)


def test_a_scrape_longer_than_the_load_may_describe_an_idle_engine(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    long = EngineSample(scrape_start=0.5, scrape_end=2.5, running=0.0, generation_tokens_total=20.0)
    summary = summary_of(make_request(1, 1.0, tokens_at=[0.5, 1.0]), samples=[idle(0.2, 0.0), long, idle(3.0, 20.0)])
    assert (summary["server"]["max_running"], summary["server"]["generation_tokens"]) == (None, 20.0)


@pytest.fixture
def header_of_old_pages(header: RunHeader) -> RunHeader:
    return replace(header, engine=EngineFacts(name="ray-serve-llm", title="Ray Serve LLM", page_age=2.0))


@pytest.mark.parametrize(
    ("until", "peaks", "reason"),
    [
        (1.5, (None, None, None), "the engine's metrics page may be 2 s old, and the load lasted 1.5 s"),
        (4.0, (3.0, 1.0, 0.3), None),
    ],
    ids=["shorter than the page's age", "longer"],
)
def test_pages_that_may_describe_an_earlier_load_have_no_peaks(
    tmp_path: Path, header_of_old_pages: RunHeader, make_request: MakeRequest, until: float, peaks: Any,
    reason: str | None,
) -> None:  # fmt: skip
    earlier = [sample(at, running=9.0, waiting=7.0, kv_usage=0.9) for at in (1.2, 1.9, 2.4)]
    own = [sample(at, running=3.0, waiting=1.0, kv_usage=0.3) for at in (3.5, 4.5)]
    recorder = Recorder.create(tmp_path / "run.servetop", header_of_old_pages)
    request = make_request(1, 1.0, tokens_at=[0.5, until])
    recorder.commit(TickTransaction(engine_samples=[*earlier, *own], requests=[request], stages=[stage(0, 1.0)]))
    recorder.close(RunEnd(at=6.0, exit_code=0, reason=""))
    with closing(RecordingReader.open(recorder.path)) as reader:
        summary = summary_json(run_summary(reader))
    for server in (summary["server"], summary["stages"][0]["server"]):
        assert (server["max_running"], server["max_waiting"], server["max_kv_usage"]) == peaks
        assert server["peaks_reason"] == reason


def test_the_ticks_of_a_killed_run_show_when_requests_were_in_flight(tmp_path: Path, header: RunHeader) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(engine_samples=[idle(0.5, 0.0), idle(4.5, 20.0)], stages=[stage(0, 0.0)]))
    for index in range(16):  # four per second: one request from 1 s to 3 s
        gauges = LoadGauges(in_flight=int(4 <= index < 12))
        recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=index, gauges=gauges))))
    with closing(RecordingReader.open(recorder.path)) as reader:
        server = summary_json(run_summary(reader))["server"]
    recorder.close(RunEnd(at=4.0, exit_code=0, reason=""))
    assert server["max_running"] is None
    assert server["peaks_reason"].startswith("the engine's metrics were not scraped while requests were in flight")
