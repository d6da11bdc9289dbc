"""The final numbers of small runs, compared with manual calculations."""

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.analysis.checks.thresholds import threshold_keys
from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.summary.summary_json import set_up_json, summary_json
from servetop.analysis.trust.objectives import meets_objectives
from servetop.core.config import StageConfig
from servetop.core.events import RequestRecord, RequestStatus, RunEnd
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import judged_summary, run_summary
from tests.recordings.rows import sample, stage

MakeRequest = Callable[..., RequestRecord]
MakeTick = Callable[..., Tick]
Summarise = Callable[..., dict[str, Any]]


def test_latencies_of_three_requests(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(
        make_request(1, 0.0, tokens_at=[0.1, 0.2, 0.3]),
        make_request(2, 1.0, tokens_at=[0.2, 0.4, 0.6], slip=0.5),
        make_request(3, 2.0, tokens_at=[0.3]),
    )
    ttfts = [100.0, 200.0, 300.0]
    assert summary["mean_ttft_ms"] == pytest.approx(200.0)
    assert summary["p90_ttft_ms"] == pytest.approx(np.percentile(ttfts, 90))
    assert summary["p99_ttft_ms"] == pytest.approx(np.percentile(ttfts, 99))
    assert summary["std_ttft_ms"] == pytest.approx(np.std(ttfts))
    assert summary["median_tpot_ms"] == pytest.approx(150.0)  # of 100 and 200: the third has a single token
    assert summary["mean_itl_ms"] == pytest.approx(150.0)  # gaps of 100, 100, 200, 200
    assert summary["p50_itl_ms"] == pytest.approx(150.0)
    assert summary["mean_e2el_ms"] == pytest.approx(400.0)  # 300, 600, 300
    assert summary["mean_client_queue_time_ms"] == pytest.approx(500.0 / 3)
    assert summary["p50_ttft_from_due_ms"] == pytest.approx(300.0)  # 100, 700, 300
    assert summary["mean_e2el_from_due_ms"] == pytest.approx(1700.0 / 3)


def test_time_to_first_output_token_of_a_model_that_reasoned(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(
        make_request(1, 0.0, tokens_at=[0.1, 0.2, 0.5], reasoning_tokens=2, first_output_at=0.5),
        make_request(2, 1.0, tokens_at=[0.3, 0.4]),  # without reasoning, its first token is its first output token
        make_request(3, 2.0, tokens_at=[0.1, 0.2], reasoning_tokens=2),  # its output never started
    )
    assert summary["mean_ttfot_ms"] == pytest.approx(400.0)
    assert summary["p99_ttfot_ms"] == pytest.approx(498.0)
    assert summary["mean_ttft_ms"] == pytest.approx(500.0 / 3)
    assert summary["total_reasoning_tokens"] == 4


def test_without_reasoning_there_are_no_reasoning_keys(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(make_request(1, 0.0), make_request(2, 0.0, reasoning_tokens=0))
    assert [key for key in summary if "ttfot" in key or "reasoning" in key] == []


def test_totals_and_throughput_from_first_sent_to_last_done(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(
        make_request(1, 1.0, tokens_at=[0.5, 1.0]),
        make_request(2, 2.0, tokens_at=[0.5, 1.0, 1.5, 3.0], prompt_tokens=20),
    )
    assert summary["duration"] == pytest.approx(4.0)
    assert (summary["num_prompts"], summary["completed"], summary["failed"]) == (2, 2, 0)
    assert (summary["total_input_tokens"], summary["total_output_tokens"]) == (30, 6)
    assert summary["request_throughput"] == pytest.approx(0.5)
    assert summary["output_throughput"] == pytest.approx(1.5)
    assert summary["total_token_throughput"] == pytest.approx(9.0)
    assert summary["max_output_tokens_per_s"] == 2.0  # at 2.0 and 2.5; at 3.0 and 3.5
    assert summary["max_concurrent_requests"] == 1


def test_chunks_of_several_tokens_count_as_several_gaps(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(make_request(1, 0.0, tokens_at=[0.1, 0.4, 0.5], chunk_tokens=[2, 3, 1]))
    gaps = [100.0, 100.0, 100.0, 100.0]  # 300 ms for three tokens, 100 ms for one; the first chunk has no gap
    assert summary["mean_itl_ms"] == pytest.approx(np.mean(gaps))
    assert summary["p99_itl_ms"] == pytest.approx(100.0)
    assert summary["total_output_tokens"] == 6


def test_requests_are_counted_by_status_and_only_successful_ones_are_measured(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    summary = summary_of(
        make_request(1, 0.0, tokens_at=[0.1, 0.2]),
        make_request(2, 0.0, tokens_at=[], status=RequestStatus.ERROR, done_at=0.05, error="HTTP 500"),
        make_request(3, 0.0, tokens_at=[0.9], status=RequestStatus.TIMEOUT),
        make_request(4, 0.0, tokens_at=[0.8, 0.9], status=RequestStatus.TRUNCATED),
        make_request(5, 0.0, tokens_at=[0.7], status=RequestStatus.CANCELLED, done_at=None),
        make_request(6, 0.0, tokens_at=[], status=RequestStatus.CANCELLED, sent=None),
    )
    assert [summary[key] for key in ("num_prompts", "completed", "failed", "cancelled")] == [6, 1, 3, 2]
    assert [summary[key] for key in ("errors", "timeouts", "truncated")] == [1, 1, 1]
    assert summary["p99_ttft_ms"] == pytest.approx(100.0)
    assert summary["mean_itl_ms"] == pytest.approx(100.0)
    assert summary["total_output_tokens"] == 2
    assert summary["max_concurrent_requests"] == 5


def test_a_run_without_a_successful_request_has_no_trusted_figures(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    failed = [make_request(i, i * 0.1, tokens_at=[], status=RequestStatus.ERROR, error="HTTP 500") for i in range(5)]
    trust = summary_of(*failed)["trust"]
    assert trust["verdict"] == "no figures"
    assert trust["reasons"][0] == "no request succeeded, so nothing was measured"


def test_a_warm_up_is_excluded_from_totals_and_stages(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(
        make_request(1, 0.0, tokens_at=[5.0], stage=0),
        make_request(2, 10.0, tokens_at=[0.1], stage=1),
        stages=[stage(0, 0.0, rate=math.inf, warmup=True), stage(1, 9.0, rate=4.0)],
    )
    assert (summary["num_prompts"], summary["p99_ttft_ms"], summary["request_rate"]) == (1, pytest.approx(100.0), 4.0)
    assert [each["stage"] for each in summary["stages"]] == [1]


def test_goodput_counts_requests_within_all_limits(
    summary_of: Summarise, make_request: MakeRequest, header: RunHeader
) -> None:
    requests = [
        make_request(1, 0.0, tokens_at=[0.1, 0.2]),
        make_request(2, 0.0, tokens_at=[0.3, 0.4]),  # the first token is too late
        make_request(3, 0.0, tokens_at=[0.1, 2.0]),  # too slow
        make_request(4, 0.0, tokens_at=[0.1]),  # a single token has no TPOT
    ]
    config = replace(header.config, goodput={"ttft": 0.2, "tpot": 0.5})
    summary = summary_of(*requests, config=config)
    assert summary["request_goodput"] == pytest.approx(2 / 2.0)
    assert list(summary["goodput"]) == ["ttft:200", "tpot:500"]
    assert [meets_objectives(each, config.goodput) for each in requests] == [True, False, False, True]


def test_goodput_may_have_a_limit_of_ttfot(summary_of: Summarise, make_request: MakeRequest, header: RunHeader) -> None:
    requests = [
        make_request(1, 0.0, tokens_at=[0.1, 0.2, 0.5], reasoning_tokens=2, first_output_at=0.5),
        make_request(
            2, 1.0, tokens_at=[0.1, 0.2, 1.0], reasoning_tokens=2, first_output_at=2.0
        ),  # the output is too late
        make_request(3, 2.0, tokens_at=[0.3, 0.4]),  # it did not reason
        make_request(4, 3.0, tokens_at=[0.1, 1.0], reasoning_tokens=2),  # its output never started
    ]
    config = replace(header.config, goodput={"ttfot": 0.8})
    summary = summary_of(*requests, config=config)
    assert summary["request_goodput"] == pytest.approx(2 / summary["duration"])
    assert sum(meets_objectives(each, config.goodput) for each in requests) == 2


def test_without_limits_there_is_no_goodput(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(make_request(1, 0.0))
    assert summary["request_goodput"] is None
    assert "goodput" not in summary


def test_a_run_without_requests_has_nulls_and_no_nan(summary_of: Summarise) -> None:
    summary = summary_of()
    assert (summary["num_prompts"], summary["duration"], summary["output_throughput"]) == (0, 0.0, None)
    assert (summary["mean_ttft_ms"], summary["p99_itl_ms"]) == (None, None)
    assert summary["trust"]["verdict"] == "unknown"
    assert summary["server"]["preemptions"] is None


def test_requested_percentiles_are_added_to_the_standard_ones(
    tmp_path: Path, summary_of: Summarise, make_request: MakeRequest, header: RunHeader
) -> None:
    requests = [make_request(n, float(n), tokens_at=[(n + 1) / 100]) for n in range(101)]
    config = replace(header.config, metric_percentiles=(75.0, 99.9))
    summary = summary_of(*requests, config=config)
    named = [key for key in summary if key.endswith("_ttft_ms")]
    assert named == [
        f"{each}_ttft_ms" for each in ("mean", "std", "median", "p50", "p90", "p95", "p99", "p75", "p99.9")
    ]
    assert summary["p75_ttft_ms"] == pytest.approx(760)
    assert summary["p99.9_ttft_ms"] == pytest.approx(1009)
    with closing(RecordingReader.open(tmp_path / "run.servetop")) as reader:
        again = summary_json(run_summary(reader, percentiles=(10.0,)))
    assert again["p10_ttft_ms"] == pytest.approx(110)
    assert "p75_ttft_ms" not in again


def test_vllms_name_for_the_latency_with_the_clients_queue(summary_of: Summarise, make_request: MakeRequest) -> None:
    summary = summary_of(make_request(1, 0.5, tokens_at=[1.0, 2.0], slip=0.5))
    assert summary["mean_e2el_including_client_queue_ms"] == summary["mean_e2el_from_due_ms"] == 2500


def test_a_ramp_is_reported_as_in_vllm(summary_of: Summarise, make_request: MakeRequest, header: RunHeader) -> None:
    ramp = StageConfig(ramp_from=1.0, request_rate=9.0, ramp_strategy="exponential", duration=10.0)
    config = replace(header.config, stages=(ramp,))
    summary = summary_of(make_request(1, 0.0), stages=[stage(0, 0.0)], config=config)
    keys = ("ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps")
    assert [summary[key] for key in keys] == ["exponential", 1.0, 9.0]


def test_the_set_up_is_reported_as_in_vllm(summary_of: Summarise, make_request: MakeRequest, header: RunHeader) -> None:
    config = replace(header.config, metadata={"node": "gpu7", "completed": "no"})
    summary = summary_of(make_request(1, 0.0), stages=[stage(0, 0.0, rate=math.inf)], config=config)
    assert (summary["backend"], summary["model_id"], summary["label"]) == ("sim", "llama-2-7b", "test")
    assert (summary["request_rate"], summary["burstiness"], summary["max_concurrency"]) == ("inf", 1.0, None)
    assert (summary["endpoint_type"], summary["tokenizer_id"]) == ("openai", None)
    assert (summary["node"], summary["completed"]) == ("gpu7", 1)
    assert summary["recording"].endswith("run.servetop")
    assert summary["recording_state"] == "finished"
    assert summary["date"].startswith("20231114-") or summary["date"].startswith("20231115-")


def test_the_engine_is_summarised_from_its_own_facts(tmp_path: Path, header: RunHeader) -> None:
    facts = EngineFacts(name="vllm", title="vLLM", version="0.32.0", model="meta/L", kv_blocks_total=759)
    recorder = Recorder.create(tmp_path / "run.servetop", replace(header, engine=facts))
    recorder.commit(TickTransaction(engine_samples=[sample(1.0, max_num_seqs=64.0)]))
    with closing(RecordingReader.open(recorder.path)) as reader:
        summary = summary_json(run_summary(reader))
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    assert summary["engine"] == {"name": "vllm", "version": "0.32.0", "kv_blocks_total": 759, "max_num_seqs": 64}
    assert (summary["backend"], summary["model_id"], summary["recording_state"]) == ("vllm", "meta/L", "live")


def test_requests_read_in_blocks_give_the_same_summary(
    recorder: Recorder, reader: RecordingReader, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(7)
    for number in range(40):
        gaps = generator.gamma(2.0, 0.02, size=generator.integers(0, 9))
        requests = [make_request(number, number * 0.1, tokens_at=np.cumsum(gaps).tolist())]
        recorder.commit(TickTransaction(requests=requests))
    whole = summary_json(run_summary(reader).measured)
    monkeypatch.setattr("servetop.recordings.read.load_requests.BLOCK", 7)
    monkeypatch.setattr("servetop.recordings.read.load_requests._MIN_PENDING_GAPS", 20)
    in_blocks = summary_json(run_summary(reader).measured)
    for part in ("server", "energy", "trust"):
        assert in_blocks.pop(part) == whole.pop(part)
    assert in_blocks == pytest.approx(whole)


def test_the_requests_of_the_totals_are_given_once_with_their_stages(
    recorder: Recorder, reader: RecordingReader, make_request: MakeRequest
) -> None:
    warm, load = stage(0, 0.0, warmup=True), stage(1, 1.0)
    requests = [make_request(number, number * 0.1, stage=number // 10, tokens_at=[0.1]) for number in range(20)]
    recorder.commit(TickTransaction(stages=[warm, load], requests=requests))
    seen: list[RequestColumns] = []
    summary, _ = judged_summary(reader, totals=seen.append)
    assert [each.others["stage"].tolist() for each in seen] == [[1.0] * 10]
    assert summary.requests.completed == 10


def test_every_key_of_a_threshold_is_a_number_of_the_summary(
    summary_of: Summarise, make_request: MakeRequest, header: RunHeader
) -> None:
    config = replace(header.config, prices=("2/h",))
    summary = summary_of(make_request(1, 0.0, reasoning_tokens=1, first_output_at=0.2), config=config)
    for key in threshold_keys():
        part, _, name = key.rpartition(".")
        assert name in (summary[part] if part else summary), key


def test_a_run_that_failed_before_its_first_request_has_an_error_and_no_metrics(
    tmp_path: Path, header: RunHeader
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.close(RunEnd(at=3.0, exit_code=3, reason="nothing answers"))
    with closing(RecordingReader.open(recorder.path)) as reader:
        summary = set_up_json(run_summary(reader))
    assert (summary["error"], summary["exit_code"]) == ("nothing answers", 3)
    assert {"recording", "recording_state", "engine", "date"} <= set(summary)
    assert not {"num_prompts", "completed", "p99_ttft_ms", "server", "trust", "stages", "steady"} & set(summary)
