"""No two lines of one summary contradict each other, whatever happened and however little of it was observed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.summary.summary_types import RunSummary
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.simulator.virtual_run.virtual_run import VirtualRun
from tests.judgement.kinds import scenario
from tests.judgement.observed import OBSERVATIONS
from tests.judgement.recordings import write_recording
from tests.recordings.contradictions import Told, contradictions

SEED = 31
KINDS = (
    "batch", "client", "failing", "healthy", "large-batch", "held", "others", "thin-network", "unequal", "short",
)  # fmt: skip
LESS = ("no max_num_seqs", "no waiting", "no metrics")
"""What an observer may miss."""


def summary_of(run: VirtualRun, path: Path) -> RunSummary:
    write_recording(run, path)
    reader = RecordingReader.open(path)
    try:
        return run_summary(reader)
    finally:
        reader.close()


@pytest.mark.parametrize("kind", KINDS)
def test_all_lines_of_a_summary_can_be_true_together(kind: str, tmp_path: Path) -> None:
    run = scenario(kind, 0, seed=SEED).run
    for name in ("whole", *LESS):
        summary = summary_of(OBSERVATIONS[name](run), tmp_path / f"{name}.servetop")
        assert summary.story is not None
        assert contradictions(summary) == [], (name, Told(summary).text)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    run = scenario("healthy", 0, seed=SEED).run
    return summary_of(run, tmp_path_factory.mktemp("calm") / "calm.servetop")


def saying(summary: RunSummary, cause: str, *lines: str) -> RunSummary:
    """The summary with another verdict."""
    assert summary.story is not None
    told = tuple(dataclasses.replace(summary.story.lines[0], text=line) for line in lines)
    return dataclasses.replace(summary, story=dataclasses.replace(summary.story, cause=cause, headline="", lines=told))


def with_trust(summary: RunSummary, **fields: Any) -> RunSummary:
    trust = dataclasses.replace(summary.measured.trust, **fields)
    return dataclasses.replace(summary, measured=dataclasses.replace(summary.measured, trust=trust))


def with_requests(summary: RunSummary, **fields: Any) -> RunSummary:
    requests = dataclasses.replace(summary.measured.requests, **fields)
    return dataclasses.replace(summary, measured=dataclasses.replace(summary.measured, requests=requests))


def with_server(summary: RunSummary, **fields: Any) -> RunSummary:
    server = dataclasses.replace(summary.measured.server, **fields)
    return dataclasses.replace(summary, measured=dataclasses.replace(summary.measured, server=server))


def growing(summary: RunSummary) -> RunSummary:
    """The summary of a run whose last stage has no steady window, because requests pile up."""
    *others, last = summary.stages
    reason = "in flight grows by 3 requests/s: more requests arrive than complete"
    steady = dataclasses.replace(last.steady, start=None, end=None, measured=None, reason=reason)
    return dataclasses.replace(summary, stages=(*others, dataclasses.replace(last, steady=steady)))


KEPT = "no queue, no failure: the engine kept up with the whole load"


def test_contradictions_are_found(calm: RunSummary) -> None:
    kept = saying(calm, "headroom", KEPT)
    assert contradictions(kept) == []
    planted = {
        "grew": growing(kept),
        "held": with_trust(kept, sent_exemption="held back by limit 4"),
        "others": with_trust(kept, reasons=("other traffic: about 90% are not from this run",)),
        "late": with_trust(kept, verdict="client-bound"),
        "elsewhere": with_trust(saying(calm, "batch-bound", "the batch of 4 is full"), littles_law_error=-0.9),
        "unserved": with_requests(kept, cancelled=calm.requests.num_prompts),
        "missed": with_requests(kept, request_goodput=0.0),
        "failed": with_requests(kept, failed=3),
        "queued": with_server(kept, max_waiting=40.0),
        "unseen": with_server(kept, max_waiting=None),
        "longer": with_server(saying(calm, "batch-bound", "the queue grows, to 90 requests at 0:10"), max_waiting=9.0),
        "fuller": with_server(saying(kept, "headroom", "KV blocks at most 80% in use"), max_kv_usage=0.5),
        "preempted": with_server(saying(calm, "KV-bound", "116 preemptions"), preemptions=2.0),
        "never offered": saying(calm, "headroom", "sustainable ≥ 999999 req/s"),
        "two verdicts": saying(calm, "batch-bound", KEPT),
        "held and free": saying(calm, "batch-bound", "with free KV blocks and batch slots"),
        "known and unknown": saying(calm, "KV-bound", "the queue grows; which limit holds it is unknown"),
    }
    assert {name for name, summary in planted.items() if not contradictions(summary)} == set()


def test_less_than_the_steady_window_served_is_no_estimate(calm: RunSummary) -> None:
    steady = calm.steady.measured
    assert steady is not None
    assert steady.requests.request_throughput is not None
    low = saying(calm, "KV-bound", f"sustainable ≈ {0.5 * steady.requests.request_throughput:.3g} req/s")
    assert contradictions(low)
