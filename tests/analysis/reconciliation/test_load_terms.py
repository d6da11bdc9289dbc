"""The load around a request counts what was sent near it, whatever the server took."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.analysis.reconciliation.load_terms import (
    LoadScales,
    in_flight_at,
    load_terms,
    overlapping,
    sent_before,
    sent_together,
)


def test_overlaps_are_those_of_each_pair_summed() -> None:
    sent = np.sort(np.random.default_rng(1).uniform(0, 20, 60))
    distance = np.abs(sent[:, None] - sent[None, :])
    pairs = np.maximum(0, 1 - distance / 1.5).sum(axis=1) - 1
    assert overlapping(sent, 1.5) == pytest.approx(pairs, abs=1e-9)


def test_requests_before_and_in_flight_do_not_count_the_request_itself() -> None:
    sent = np.array([0.0, 0.5, 1.2, 3.0])
    assert sent_before(sent, 1.0).tolist() == [0, 1, 1, 0]
    assert in_flight_at(sent, np.array([1.0, 4.0, 2.0, 5.0])).tolist() == [0, 1, 1, 1]


def test_terms_are_in_the_order_of_the_requests_given() -> None:
    scales = LoadScales(closed=False, lifetime=1.0, burst=0.1, step=0.02, many=True)
    sent = np.array([0.0, 0.5, 0.55, 3.0])
    mixed = np.array([3, 1, 0, 2])
    straight, shuffled = (load_terms(each, each + 1.0, scales) for each in (sent, sent[mixed]))
    assert straight.shape == (4, 5)
    assert shuffled == pytest.approx(straight[mixed])


def test_a_closed_loop_has_its_requests_in_flight_as_load() -> None:
    scales = LoadScales(closed=True, lifetime=1.0, burst=0.1, step=0.02, many=False)
    sent = np.array([0.0, 0.0, 1.0, 1.1])
    assert load_terms(sent, np.array([1.0, 1.1, 2.0, 2.1]), scales).tolist() == [[0], [0], [1], [1]]


def test_requests_that_are_prefilled_together_are_those_sent_just_before_and_after() -> None:
    sent = np.array([5.0, 0.0, 0.015, 0.03, 5.01])
    amounts = np.array([1.0, 10.0, 100.0, 1000.0, 10_000.0])
    assert sent_together(sent, amounts, 0.02).tolist() == [10_000.0, 100.0, 1010.0, 100.0, 1.0]
