"""Requests of GenAI-Perf have its percentiles, computed by its own code; what the file lacks is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus, TokenSource
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.run.imports.genai_perf_export import read_genai_perf_export
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results

EXPORT = Path(__file__).parents[2] / "corpus" / "results" / "genai_perf" / "profile_export.json"
STATISTICS = EXPORT.with_name("profile_export_genai_perf.json")
NANOSECOND = 1e-6
"""In milliseconds; GenAI-Perf rounds inter-token latency to it."""
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXPORT.read_text(encoding="utf-8"))
    return found


def read(found: dict[str, Any], path: Path = EXPORT) -> ImportedResult:
    (result,) = read_genai_perf_export(found, path)
    return result


def chat(text: str, **members: Any) -> str:
    delta = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": text}}]} | members
    return f"data: {json.dumps(delta)}\n\n"


def of_responses(*responses: tuple[int, str]) -> dict[str, Any]:
    """Return a file with one request, sent at 1 ms, with responses at these times in milliseconds."""
    request = {
        "timestamp": 1_000_000,
        "request_inputs": {"payload": '{"model": "m"}'},
        "response_timestamps": [1_000_000 * at for at, _ in responses],
        "response_outputs": [{"response": text} for _, text in responses],
    }
    experiment = {"experiment": {"mode": "request_rate", "value": 2.5}, "requests": [request]}
    return {"service_kind": "openai", "endpoint": "v1/chat/completions", "experiments": [experiment]}


def test_the_percentiles_of_genai_perf_follow_from_the_rows() -> None:
    published = json.loads(STATISTICS.read_text(encoding="utf-8"))
    (result,) = read_results(EXPORT)
    values: dict[str, list[Any]] = {
        "time_to_first_token": [each.ttft for each in result.requests],
        "request_latency": [each.e2el for each in result.requests],
        "inter_token_latency": [each.tpot for each in result.requests],
        "output_sequence_length": [each.output_tokens / 1e3 for each in result.requests],
    }
    for name, found in values.items():
        assert len(found) == 24
        assert 1e3 * np.mean(found) == pytest.approx(published[name]["avg"], abs=NANOSECOND)
        for q in PERCENTILES:
            assert 1e3 * np.percentile(found, q) == pytest.approx(published[name][f"p{q}"], abs=NANOSECOND), (name, q)


def test_load_model_clock_and_what_was_published_are_kept() -> None:
    (result,) = read_results(EXPORT)
    assert (result.model, result.label, result.endpoint, result.backend) == (
        "llama-2-7b", "concurrency 4", "chat", "openai",
    )  # fmt: skip
    assert (result.load.max_concurrency, result.load.request_rate) == (4, float("inf"))
    sent = [each["timestamp"] for each in document()["experiments"][0]["requests"]]
    assert result.wall_epoch_s == pytest.approx(min(sent) / 1e9)
    assert result.reported["mean_ttft_ms"] == pytest.approx(21.391619375)
    assert result.metadata == {"perf_analyzer_version": "2.59.1"}
    assert result.not_carried == ["texts of prompts and completions (24)"]
    assert [each.token_source for each in result.requests] == [TokenSource.CHUNKS] * 24
    assert result.remarks == [
        "the file has no times at which requests were due: each counts as due when it was sent",
        "the file has no lengths of prompts in tokens: prompt tokens are unknown",
    ]


def test_the_recording_is_sound(tmp_path: Path) -> None:
    (result,) = read_results(EXPORT)
    record_import(result, EXPORT, tmp_path / "run.servetop")
    assert verify(tmp_path / "run.servetop").verdict is VerifyVerdict.SOUND


@pytest.mark.parametrize("published", [None, 30.0])
def test_another_count_of_tokens_is_said(tmp_path: Path, published: float | None) -> None:
    path = Path(shutil.copy(EXPORT, tmp_path))
    if published is not None:
        statistics = json.dumps({"output_sequence_length": {"unit": "tokens", "avg": published}})
        path.with_name(STATISTICS.name).write_text(statistics, encoding="utf-8")
    (result,) = read_results(path)
    told = "" if published is None else ", and counted 30 on average"
    assert result.remarks[2] == (
        f"output tokens are events with content (8.75 on average): GenAI-Perf counts with a tokenizer{told}, so TPOT "
        "and tokens/s are GenAI-Perf's only where each event is a token"
    )


def test_each_experiment_is_a_run() -> None:
    found = document()
    rate = {"experiment": {"mode": "request_rate", "value": 3.5}, "requests": found["experiments"][0]["requests"]}
    first, second = read_genai_perf_export(found | {"experiments": [*found["experiments"], rate]}, EXPORT)
    assert (first.label, second.label, second.load.request_rate) == ("concurrency 4", "request_rate 3.5", 3.5)
    assert first.reported == second.reported == {}


def test_a_request_ends_with_its_last_content_and_an_empty_response_is_no_token() -> None:
    (request,) = read(of_responses((2, chat("")), (5, chat("a")), (9, chat("b")), (12, "data: [DONE]\n\n"))).requests
    assert (request.ttft, request.e2el, request.output_tokens) == pytest.approx((0.004, 0.008, 2))


def test_a_part_of_an_event_belongs_to_its_beginning_and_events_at_once_are_one_chunk() -> None:
    event = chat("a")
    parts = of_responses((2, event[:30]), (3, event[30:]), (5, chat("b") + chat("c") + event[:9]), (8, event[9:]))
    (request,) = read(parts).requests
    assert request.chunk_times.tolist() == pytest.approx([0.001, 0.004])
    assert request.chunk_tokens.tolist() == [1, 3]


@pytest.mark.parametrize(("apart", "scheduled"), [(0, False), (2_000_000_000, True)])
def test_of_another_mode_the_times_tell_the_loop(apart: int, scheduled: bool) -> None:
    found = document()
    experiment = found["experiments"][0]
    experiment["experiment"] = {"mode": "custom_intervals", "value": 0}
    for number, each in enumerate(experiment["requests"]):
        moved = (1 + number) * apart - each["timestamp"] if apart else 0
        each["timestamp"] += moved
        each["response_timestamps"] = [at + moved for at in each["response_timestamps"]]
    assert (read(found).load.is_limited, read(found).load.scheduled) == (False, scheduled)


def test_the_count_of_the_server_is_taken() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 9}
    result = read(of_responses((2, chat("a")), (4, chat("b")), (5, chat("", choices=[], usage=usage))))
    (request,) = result.requests
    assert (request.prompt_tokens, request.output_tokens, request.token_source) == (7, 9, TokenSource.USAGE)
    assert request.e2el == pytest.approx(0.003)
    assert len(result.remarks) == 1


@pytest.mark.parametrize(
    ("responses", "error"),
    [
        ([(2, chat("a")), (3, "event: error\ndata: out of memory\n\n")], "out of memory"),
        ([(2, 'data: {"error": {"message": "too\\nlong"}}\n\n')], "too long"),
        ([(2, chat(""))], "its responses have no content"),
        ([], "its responses have no content"),
    ],
)
def test_a_request_without_content_or_with_an_error_failed(responses: list[tuple[int, str]], error: str) -> None:
    found = of_responses((2, chat("a")))
    found["experiments"][0]["requests"] += of_responses(*responses)["experiments"][0]["requests"]
    good, bad = sorted(read(found).requests, key=lambda each: each.status is RequestStatus.ERROR)
    assert (good.status, bad.status, bad.error) == (RequestStatus.OK, RequestStatus.ERROR, error)


def test_responses_of_triton_are_tokens_by_their_ids_or_texts() -> None:
    found = of_responses((2, ""), (3, ""), (5, ""))
    request = found["experiments"][0]["requests"][0]
    request["request_inputs"] = {"input_ids": [1, 2, 3]}
    request["response_outputs"] = [{"output_ids": 5}, {"output_ids": [6, 7]}, {"output_ids": ""}]
    (by_id,) = read(found | {"service_kind": "triton_c_api"}).requests
    assert (by_id.prompt_tokens, by_id.output_tokens, by_id.ttft, by_id.e2el) == pytest.approx((3, 3, 0.001, 0.004))
    request["response_outputs"] = [{"text_output": ""}, {"text_output": "a"}, {"text_output": "b"}]
    result = read(found | {"service_kind": "triton"})
    assert result.requests[0].ttft == pytest.approx(0.002)
    assert result.remarks[-1] == "the first response of 1 request is empty, and does not count as the first token"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"timestamp": None}, "timestamp of request 2 is None: a time in nanoseconds is needed"),
        ({"timestamp": 2**62}, "response_timestamps of request 2 are not in order"),
        ({"response_timestamps": [3]}, "response_timestamps and response_outputs of request 2 are not two lists of"),
        ({"response_outputs": 3}, "response_timestamps and response_outputs of request 2 are not two lists of"),
        ({"response_outputs": [3], "response_timestamps": [2**61]}, "response_outputs of request 2 are not objects"),
        (
            {"response_outputs": [{"response": "data: {x"}], "response_timestamps": [2**61]},
            "a response of request 2 is not JSON, or cut off",
        ),
    ],
)
def test_values_that_make_no_sense_are_refused(change: dict[str, Any], reason: str) -> None:
    found = document()
    found["experiments"][0]["requests"][1] |= change
    with pytest.raises(UsageError) as refused:
        read(found)
    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (
            {"request_latency": {}, "input_config": {}},
            "it has statistics but no requests: give the profile_export.json",
        ),
        ({"service_kind": "openai", "experiments": 3}, "its experiments are not a list of objects"),
        ({"service_kind": "openai", "experiments": [{"requests": []}]}, "its experiments have no requests"),
        ({"service_kind": "openai", "experiments": [{"requests": [3]}]}, "its requests are not a list of objects"),
        (of_responses((2, '{"object": "list", "data": [{"embedding": [0.1]}]}')), "none of its responses has text"),
    ],
)
def test_what_has_no_requests_is_refused(found: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        read_results(path)
    assert str(refused.value).startswith(f"{path}: {reason}")
