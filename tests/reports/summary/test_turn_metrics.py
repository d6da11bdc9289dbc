"""The metrics of each turn of conversations, compared with manual calculations."""

from collections.abc import Callable
from typing import Any

import pytest

from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.events import RequestRecord, RequestStatus, StageChange

MakeRequest = Callable[..., RequestRecord]
Summarise = Callable[..., dict[str, Any]]
CONVERSATIONS = RunConfig(workload=WorkloadConfig(num_turns="2"))


def stage(index: int, at: float, *, warmup: bool = False) -> StageChange:
    return StageChange(
        at=at, index=index, label="", request_rate=8.0, max_concurrency=None, max_num_seqs=None, warmup=warmup
    )


def test_each_turn_has_latencies_prompt_lengths_and_a_cached_share(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    summary = summary_of(
        make_request(0, 0.0, tokens_at=[0.1, 0.2, 0.3], conversation=0, turn=1, prompt_tokens=10, cached_tokens=0),
        make_request(1, 0.0, tokens_at=[0.3, 0.5], conversation=1, turn=1, prompt_tokens=30, cached_tokens=8),
        make_request(2, 1.0, tokens_at=[0.4], conversation=0, turn=2, prompt_tokens=50, cached_tokens=40),
        make_request(3, 1.0, conversation=1, turn=2, status=RequestStatus.ERROR, prompt_tokens=70),
        config=CONVERSATIONS,
    )
    first, second = summary["turns"]
    assert (first["turn"], first["requests"], first["completed"]) == (1, 2, 2)
    assert first["mean_ttft_ms"] == pytest.approx(200.0)
    assert first["p50_ttft_ms"] == pytest.approx(200.0)
    assert first["p99_ttft_ms"] == pytest.approx(298.0)
    assert first["mean_tpot_ms"] == pytest.approx(150.0)
    assert (first["mean_prompt_tokens"], first["cached_share"]) == (20.0, 0.2)
    assert (second["turn"], second["requests"], second["completed"]) == (2, 2, 1)
    assert (second["mean_tpot_ms"], second["mean_prompt_tokens"], second["cached_share"]) == (None, 50.0, 0.8)


def test_the_time_per_token_of_a_turn_counts_the_tokens_of_events(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    fours = {"tokens_at": [0.1, 0.2, 0.3], "chunk_tokens": [4, 4, 4]}
    unknown = {"tokens_at": [0.1, 0.2, 0.3], "output_tokens": 12}
    summary = summary_of(
        make_request(0, 0.0, conversation=0, turn=1, **fours),
        make_request(1, 1.0, conversation=0, turn=2, **unknown),
        config=CONVERSATIONS,
    )
    first, second = summary["turns"]
    assert (first["mean_tpot_ms"], first["tpot_reason"]) == (pytest.approx(25.0), None)
    assert (second["mean_tpot_ms"], second["p99_tpot_ms"]) == (None, None)
    assert second["tpot_reason"].startswith("the events of 1 of 1 request contained several tokens each")
    assert second["mean_ttft_ms"] == pytest.approx(100.0)


def test_turns_of_a_warm_up_are_excluded_and_each_stage_has_its_own(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    summary = summary_of(
        make_request(0, 0.1, conversation=0, turn=1, stage=0),
        make_request(1, 1.1, conversation=1, turn=1, stage=1),
        make_request(2, 2.1, conversation=1, turn=2, stage=2),
        stages=[stage(0, 0.0, warmup=True), stage(1, 1.0), stage(2, 2.0)],
        config=CONVERSATIONS,
    )
    assert [(each["turn"], each["requests"]) for each in summary["turns"]] == [(1, 1), (2, 1)]
    assert [[each["turn"] for each in part["turns"]] for part in summary["stages"]] == [[1], [2]]


def test_a_server_that_reports_no_cached_tokens_has_no_cached_share(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    summary = summary_of(
        make_request(0, 0.0, conversation=0, turn=1),
        make_request(1, 0.0, conversation=1, turn=1, status=RequestStatus.ERROR, tokens_at=()),
        config=CONVERSATIONS,
    )
    assert [each["cached_share"] for each in summary["turns"]] == [None]
