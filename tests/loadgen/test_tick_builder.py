"""The counts of a tick: counters, weighted gaps, corrections by the server's counts."""

import pytest

from servetop.core.events import RequestStatus
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.dialect import Prompt
from servetop.core.tick import LoadGauges
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.workload.stages.stage_run import Due

DIALECT = dialect_for("completions", model="m", continuous_usage=True)
PROMPT = Prompt(text="", token_ids=(11, 12), input_tokens=2, output_tokens=9)


def new_request(*, due: float = 1.0, sent: float | None = 1.001, limited: bool = False) -> RequestState:
    prepared = PreparedRequest(PROMPT, b"{}")
    made = RequestState(0, Due(0, due), prepared=prepared, dialect=DIALECT, limited=limited)
    if sent is not None:
        made.mark_sent(sent)
    return made


def event(text: str, count: int) -> bytes:
    return f'data: {{"choices": [{{"text": "{text}"}}], "usage": {{"completion_tokens": {count}}}}}\n\n'.encode()


def close(builder: TickBuilder, index: int = 0) -> tuple[int, int, LogHistogram]:
    tick = builder.build(index, gauges=LoadGauges(), cpu_seconds=0.0)
    return tick.output_tokens, tick.chunks, tick.itl


def test_a_gap_is_divided_among_the_tokens_of_its_later_chunk() -> None:
    builder, request = TickBuilder(), new_request()
    request.headers_received(200, 1.01)
    request.body_received(event("a", 1), 1.02)
    builder.add_chunks(request)
    request.body_received(event("bcd", 4), 1.08)
    builder.add_chunks(request)
    tokens, chunks, itl = close(builder)
    assert (tokens, chunks) == (4, 2)
    assert itl.count == 3
    assert itl.mean == pytest.approx(0.02)


def test_a_gap_across_ticks_belongs_to_the_later_one() -> None:
    builder, request = TickBuilder(), new_request()
    request.body_received(event("a", 1), 1.02)
    builder.add_chunks(request)
    assert close(builder)[2].count == 0
    request.body_received(event("b", 2), 1.05)
    builder.add_chunks(request)
    assert close(builder, 1)[2].mean == pytest.approx(0.03)


def test_slip_and_client_wait_are_separate() -> None:
    builder = TickBuilder()
    builder.add_sent(new_request(due=1.0, sent=1.002))
    builder.add_sent(new_request(due=1.0, sent=3.0, limited=True))
    tick = builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0)
    assert tick.sent == 2
    assert tick.slip.mean == pytest.approx(0.002)
    assert tick.client_wait.mean == pytest.approx(2.0)


def test_a_server_that_counted_fewer_tokens_never_makes_a_tick_negative() -> None:
    builder, request = TickBuilder(), new_request()
    for _ in range(3):
        request.body_received(b'data: {"choices": [{"text": "a"}]}\n\n', 1.02)
    builder.add_chunks(request)
    assert close(builder)[0] == 3
    request.body_received(b'data: {"choices": [], "usage": {"completion_tokens": 1}}\n\ndata: [DONE]\n\n', 1.03)
    builder.add_chunks(request)
    builder.add_ended(request, build_record(request, worker=0))
    assert close(builder, 1)[0] == 0
    other = new_request()
    other.body_received(event("abc", 3), 1.04)
    builder.add_chunks(other)
    assert close(builder, 2)[0] == 1


@pytest.mark.parametrize("status", list(RequestStatus))
def test_each_status_is_counted_separately(status: RequestStatus) -> None:
    builder, request = TickBuilder(), new_request()
    request.abandon(status, 2.0, reason="because")
    builder.add_ended(request, build_record(request, worker=0))
    tick = builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0)
    counts = (tick.ok, tick.errors, tick.timeouts, tick.cancelled, tick.truncated)
    assert sum(counts) == 1
    assert tick.e2el.count == tick.ok


def test_requests_that_met_all_objectives_are_counted_from_sent_and_from_due() -> None:
    builder = TickBuilder({"ttft": 0.1, "tpot": 0.05})
    for first_token_at in (1.05, 1.09, 3.0):
        request = new_request(due=0.98, sent=1.0)
        request.body_received(event("a", 1), first_token_at)
        request.body_received(event("b", 2), first_token_at + 0.01)
        request.body_received(b"data: [DONE]\n\n", first_token_at + 0.01)
        builder.add_ended(request, build_record(request, worker=0))
    failed = new_request()
    failed.abandon(RequestStatus.ERROR, 2.0, reason="because")
    builder.add_ended(failed, build_record(failed, worker=0))
    tick = builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0)
    assert (tick.good, tick.good_due, tick.judged) == (2, 1, 4)
    assert builder.build(1, gauges=LoadGauges(), cpu_seconds=0.0).good == 0
    assert TickBuilder().build(0, gauges=LoadGauges(), cpu_seconds=0.0).good is None


def test_a_late_heartbeat_counts_for_those_it_delayed() -> None:
    builder = TickBuilder()
    builder.add_lag(0.050)
    lag = builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0).loop_lag
    assert lag.count == 3
    assert lag.total == pytest.approx(0.050 + 0.030 + 0.010)


def test_a_request_without_an_outcome_has_no_record() -> None:
    with pytest.raises(ValueError, match="has not ended"):
        build_record(new_request(), worker=0)
