"""Requests become columns in order of sending."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.core.events import RequestStatus
from tests.run.audit.small_records import record


def test_columns_are_those_of_the_requests_that_were_sent() -> None:
    late = record(1, sent=1.0, first=1.2, done=1.8)
    failed = record(2, sent=0.5, first=None, done=0.6, status=RequestStatus.ERROR)
    rows = ClientRows.of([late, failed])
    assert rows.ok.tolist() == [False, True]
    assert rows.sent.tolist() == [0.5, 1.0]
    assert rows.ttft[1] == pytest.approx(0.2)
    assert rows.span[1] == pytest.approx(0.6)
    assert (rows.gaps[1], rows.later[1], rows.output[1]) == (3, 3, 4)
    assert math.isnan(rows.ttft[0])
    assert rows.seconds == pytest.approx(1.3)
    assert rows.completed.sent.tolist() == [1.0]


def test_the_servers_times_stay_with_their_requests() -> None:
    seen = [record(number, sent=number, first=number + 0.2, done=number + 1.0) for number in range(3)]
    served = [record(number, sent=number + 0.01, first=number + 0.1, done=number + 1.0) for number in range(3)]
    rows = ClientRows.of(seen).with_server(ClientRows.of(served)).where(np.array([False, False, True]))
    assert rows.server is not None
    assert rows.server.arrived.tolist() == [2.01]
    assert rows.server.ttft == pytest.approx([0.09])
