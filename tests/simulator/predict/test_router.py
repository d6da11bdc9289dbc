"""Replicas behind a router."""

from __future__ import annotations

import pytest

from tests.simulator.predict.cells import result_of


def test_copies_of_a_model_double_the_throughput_of_a_saturated_one() -> None:
    one, two, balanced = (
        result_of(model="opt-1.3b", num_prompts=600, replicas=replicas, router=router)
        for replicas, router in ((1, "round-robin"), (2, "round-robin"), (2, "least-loaded"))
    )
    assert two.output_throughput == pytest.approx(2 * one.output_throughput, rel=0.1)
    assert two.completed == balanced.completed == 600
    assert two.kv_blocks_total == 2 * one.kv_blocks_total


def test_replicas_are_no_slower_than_a_single_engine() -> None:
    alone, routed = (
        result_of(model="opt-1.3b", num_prompts=50, request_rate=3.0, arrivals="constant", replicas=count)
        for count in (1, 2)
    )
    assert routed.completed == alone.completed == 50
    assert routed.e2el_ms.p99 <= alone.e2el_ms.p99
