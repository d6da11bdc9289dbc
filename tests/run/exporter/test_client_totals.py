"""The client's counters: warm-ups apart, and a series of histograms for each engine and model."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.core.events import RequestRecord, RequestStatus, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick
from servetop.run.exporter.client_totals import MOST_PENDING, ClientTotals
from servetop.run.exporter.exposition import exposition
from tests.run.exporter.recorded import Samples, samples_of

A, B = ({"gen_ai_request_model": name} for name in "ab")


def request(stage: int, status: RequestStatus = RequestStatus.OK) -> RequestRecord:
    return RequestRecord(
        id=0, stage=stage, due=0.0, prompt_tokens=5, output_tokens=3, status=status,
        chunk_times=np.empty(0), chunk_tokens=np.empty(0, np.int64),
    )  # fmt: skip


def stage(index: int, *, warmup: bool) -> StageChange:
    return StageChange(
        at=0.0, index=index, label="", request_rate=1.0, max_concurrency=None, max_num_seqs=None, warmup=warmup
    )


def tick(index: int, seconds: float) -> ClientTick:
    return ClientTick(index=index, sent=1, output_tokens=2, e2el=LogHistogram.of([seconds]))


def page(totals: ClientTotals) -> Samples:
    return samples_of(exposition(totals.families(), openmetrics=True))


def test_requests_and_tokens_of_warm_ups_are_counted_apart() -> None:
    totals = ClientTotals(streamed=True)
    totals.add(None, [], [stage(0, warmup=True), stage(1, warmup=False)])
    totals.add(None, [request(0), request(1), request(1), request(1, RequestStatus.ERROR)], [])
    found = page(totals)
    assert found["servetop_requests_total", (("status", "ok"), ("warmup", "true"))] == 1
    assert found["servetop_requests_total", (("status", "ok"), ("warmup", "false"))] == 2
    assert found["servetop_requests_total", (("status", "error"), ("warmup", "false"))] == 1
    assert found["servetop_request_tokens_total", (("gen_ai_token_type", "input"), ("warmup", "false"))] == 10
    assert found["servetop_request_tokens_total", (("gen_ai_token_type", "output"), ("warmup", "true"))] == 3


def test_each_model_has_a_series_that_stays() -> None:
    totals = ClientTotals(streamed=True)
    totals.add(ClientTick(index=0), [], [])  # while the engine starts
    for index, labels in enumerate((A, B, A), start=1):
        totals.set_labels(labels)
        totals.add(tick(index, 0.1 * index), [], [])
    found, name = page(totals), "gen_ai_client_operation_duration_seconds_count"
    counts = {labels: count for (each, labels), count in found.items() if each == name}
    assert counts == {tuple(A.items()): 2, tuple(B.items()): 1}
    assert found["servetop_sent_requests_total", ()] == 3


def test_many_ticks_add_up_as_if_each_was_asked_for() -> None:
    totals, asked = ClientTotals(streamed=True), ClientTotals(streamed=True)
    for each in (totals, asked):
        each.set_labels(A)
    for index in range(3 * MOST_PENDING + 1):
        for each in (totals, asked):
            each.add(tick(index, 0.01 * index), [], [])
        if index % 7 == 0:
            page(asked)
    whole, known = page(totals), page(asked)
    assert whole["servetop_output_tokens_total", ()] == 2 * (3 * MOST_PENDING + 1)
    assert whole == pytest.approx(known)


def test_there_is_no_time_to_the_first_chunk_without_streams() -> None:
    totals = ClientTotals(streamed=False)
    totals.set_labels(A)
    totals.add(tick(0, 0.1), [], [])
    names = {name for name, _ in page(totals)}
    assert "gen_ai_client_operation_duration_seconds_count" in names
    assert not any("time_to_first_chunk" in name for name in names)
