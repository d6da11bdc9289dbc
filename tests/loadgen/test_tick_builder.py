"""The accounts of a tick: counters, weighted gaps, corrections by the server's own counts."""

import pytest

from servetop.core.events import RequestStatus
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.dialect import Prompt
from servetop.core.tick import LoadGauges
from servetop.engines.dialects import dialect_for
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.workload.stage_run import Due

DIALECT = dialect_for("completions", model="m", continuous_usage=True)
PROMPT = Prompt(text="", token_ids=(11, 12), input_tokens=2, output_tokens=9)


def exchange(*, due: float = 1.0, sent: float | None = 1.001, limited: bool = False) -> RequestState:
    prepared = PreparedRequest(PROMPT, b"{}")
    made = RequestState(0, Due(0, due), prepared=prepared, dialect=DIALECT, limited=limited)
    if sent is not None:
        made.mark_sent(sent)
    return made


def event(text: str, count: int) -> bytes:
    return f'data: {{"choices": [{{"text": "{text}"}}], "usage": {{"completion_tokens": {count}}}}}\n\n'.encode()


def close(accounts: TickBuilder, index: int = 0) -> tuple[int, int, LogHistogram]:
    tick = accounts.build(index, gauges=LoadGauges(), cpu_seconds=0.0)
    return tick.output_tokens, tick.chunks, tick.itl


def test_a_gap_is_shared_by_the_tokens_of_its_later_chunk() -> None:
    accounts, request = TickBuilder(), exchange()
    request.headers_received(200, 1.01, is_stream=True)
    request.body_received(event("a", 1), 1.02)
    accounts.add_chunks(request)
    request.body_received(event("bcd", 4), 1.08)
    accounts.add_chunks(request)
    tokens, chunks, itl = close(accounts)
    assert (tokens, chunks) == (4, 2)
    assert itl.count == 3
    assert itl.mean == pytest.approx(0.02)


def test_a_gap_across_ticks_belongs_to_the_later_one() -> None:
    accounts, request = TickBuilder(), exchange()
    request.body_received(event("a", 1), 1.02)
    accounts.add_chunks(request)
    assert close(accounts)[2].count == 0
    request.body_received(event("b", 2), 1.05)
    accounts.add_chunks(request)
    assert close(accounts, 1)[2].mean == pytest.approx(0.03)


def test_slip_and_wait_are_kept_apart() -> None:
    accounts = TickBuilder()
    accounts.add_sent(exchange(due=1.0, sent=1.002))
    accounts.add_sent(exchange(due=1.0, sent=3.0, limited=True))
    tick = accounts.build(0, gauges=LoadGauges(), cpu_seconds=0.0)
    assert tick.sent == 2
    assert tick.slip.mean == pytest.approx(0.002)
    assert tick.client_wait.mean == pytest.approx(2.0)


def test_a_server_that_counted_fewer_tokens_never_makes_a_tick_negative() -> None:
    accounts, request = TickBuilder(), exchange()
    for _ in range(3):
        request.body_received(b'data: {"choices": [{"text": "a"}]}\n\n', 1.02)
    accounts.add_chunks(request)
    assert close(accounts)[0] == 3
    request.body_received(b'data: {"choices": [], "usage": {"completion_tokens": 1}}\n\ndata: [DONE]\n\n', 1.03)
    accounts.add_chunks(request)
    accounts.add_ended(request, build_record(request, worker=0))
    assert close(accounts, 1)[0] == 0
    other = exchange()
    other.body_received(event("abc", 3), 1.04)
    accounts.add_chunks(other)
    assert close(accounts, 2)[0] == 1


@pytest.mark.parametrize("status", list(RequestStatus))
def test_every_ending_is_counted_apart(status: RequestStatus) -> None:
    accounts, request = TickBuilder(), exchange()
    request.abandon(status, 2.0, reason="because")
    accounts.add_ended(request, build_record(request, worker=0))
    tick = accounts.build(0, gauges=LoadGauges(), cpu_seconds=0.0)
    counts = (tick.ok, tick.errors, tick.timeouts, tick.cancelled, tick.truncated)
    assert sum(counts) == 1
    assert tick.e2el.count == tick.ok


def test_a_late_heartbeat_stands_for_those_it_held_up() -> None:
    accounts = TickBuilder()
    accounts.add_lag(0.050)
    lag = accounts.build(0, gauges=LoadGauges(), cpu_seconds=0.0).loop_lag
    assert lag.count == 3
    assert lag.total == pytest.approx(0.050 + 0.030 + 0.010)


def test_an_exchange_without_an_outcome_has_no_record() -> None:
    with pytest.raises(ValueError, match="has not ended"):
        build_record(exchange(), worker=0)
