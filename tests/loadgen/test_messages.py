"""Frames carry messages between processes unchanged, wherever the bytes are split."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import LoadError
from servetop.core.events import Action, Command, Note, RequestRecord, RequestStatus, Severity, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, LoadGauges
from servetop.loadgen.messages import FrameCodec, SenderReport, SenderSetup, ToSender
from servetop.workload.stages.plan import LoadPhase, LoadPlan

RECORD = RequestRecord(
    id=3,
    stage=1,
    due=1.0,
    sent=1.001,
    first_token_at=1.0312345678,
    done_at=1.2,
    prompt_tokens=5,
    output_tokens=7,
    status=RequestStatus.OK,
    chunk_times=np.array([1.0312345678, 1.05, 1.2]),
    chunk_tokens=np.array([1, 300, 2]),
)
REPORT = SenderReport(
    state=LoadPhase.RUNNING,
    tick=ClientTick(
        index=4,
        gauges=LoadGauges(stage=1, request_rate=math.inf, max_concurrency=3),
        ok=1,
        ttft=LogHistogram.of([0.03, 0.031, 7.0]),
        itl=LogHistogram.of([0.01], weights=[70_000]),
    ),
    records=(RECORD,),
    stages=(StageChange(at=1.0, index=1, label="x", request_rate=math.inf, max_concurrency=3, max_num_seqs=None),),
    notes=(Note(at=1.0, severity=Severity.WARNING, source="load", text="é"),),
    replies=(Command(id=1, at=0.5, action=Action.BURST, value=3.0, applied_at=0.6, reply="sending 3 requests now"),),
)


@given(st.lists(st.integers(0, 3000), max_size=8))
def test_frames_split_anywhere_give_the_same_messages(cuts: list[int]) -> None:
    codec = FrameCodec(SenderReport)
    data = codec.frame(REPORT) * 2
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = [message for low, high in itertools.pairwise(edges) for message in codec.feed(data[low:high])]
    assert len(found) == 2
    for report in found:
        assert (report.stages, report.notes, report.replies) == (REPORT.stages, REPORT.notes, REPORT.replies)
        assert report.tick.gauges == REPORT.tick.gauges
        assert (report.tick.ttft, report.tick.itl, report.tick.slip) == (
            REPORT.tick.ttft,
            REPORT.tick.itl,
            LogHistogram.of([]),
        )


def test_a_record_keeps_its_chunks_exactly() -> None:
    codec = FrameCodec(SenderReport)
    (record,) = codec.feed(codec.frame(REPORT))[0].records
    assert list(record.chunk_times) == list(RECORD.chunk_times)
    assert list(record.chunk_tokens) == [1, 300, 2]
    assert (record.status, record.headers_at, record.done_at) == (RequestStatus.OK, None, 1.2)


@given(st.lists(st.integers(0, 2**31), max_size=20))
def test_counts_of_any_size_survive_the_round_trip(counts: list[int]) -> None:
    tick = LogHistogram(np.arange(len(counts), dtype=np.int32), np.array(counts, dtype=np.int64), 1.0)
    codec = FrameCodec(SenderReport)
    report = SenderReport(state=LoadPhase.IDLE, tick=ClientTick(index=0, ttft=tick))
    assert codec.feed(codec.frame(report))[0].tick.ttft == tick


def test_setups_plans_and_commands_survive_the_round_trip() -> None:
    WorkloadConfig(extra_body={"a": [1]})
    messages = [
        ToSender(
            setup=SenderSetup(url="u", model="m", origin_ns=2**62, workload=WorkloadConfig(extra_body={"a": [1]}))
        ),
        ToSender(plan=LoadPlan(segments=((3, StageConfig(max_concurrency=2)),), begin=1.5)),
        ToSender(command=Command(id=1, at=0.0, action=Action.SET_RATE, value=math.inf)),
    ]
    codec = FrameCodec(ToSender)
    assert codec.feed(b"".join(codec.frame(message) for message in messages)) == messages


@pytest.mark.parametrize(
    "garbage", [b"Traceback (most recent call last)", b"\x01\x00\x00\x00\xff", b"\x01\x00\x00\x00\x91"]
)
def test_invalid_frames_are_an_error(garbage: bytes) -> None:
    with pytest.raises(LoadError, match="protocol error between run and sender"):
        FrameCodec(SenderReport).feed(garbage)
