"""The summary of a watch has the time in which each server was slower than the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from servetop.analysis.summary.watch_types import ReplicaWatch, WatchedFigures, WatchedLimit, WatchedServer
from servetop.core.clock import ClockAnchor
from servetop.core.events import RunEnd
from servetop.core.interfaces.replica_change import ReplicaState
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.replica_watches import fleet_headline
from servetop.reports.summary.watch_rows import server_remarks
from servetop.reports.summary.watch_summary import watch_summary
from tests.tui import canned_fleet
from tests.tui.test_fleet_state import FACTS, FULL_FROM, SECONDS, change, sample
from tests.tui.test_slower_replica import token_series


def recorded(path: Path) -> Path:
    """A watch of three servers, of which gpu1 is slower from second FULL_FROM on."""
    recorder = Recorder.create(path, RunHeader(config=canned_fleet.CONFIG, anchor=ClockAnchor.take()))
    recorder.set_engine(replace(FACTS, replica_urls=canned_fleet.URLS))
    for index in range(round(SECONDS / TICK_SECONDS)):
        summed = canned_fleet.summed((index + 1) * TICK_SECONDS)
        tick = Tick(client=ClientTick(index=index), engine=summed)
        recorder.commit(TickTransaction(tick=tick, engine_samples=[] if summed is None else [summed]))
    samples = [
        replace(sample(number, second + 0.1 * number), kv_usage=0.3, waiting=0.0, running=1.0)
        for second in range(1, SECONDS)
        for number in range(3)
    ]
    series = [row for number in range(3) for row in token_series(number, per_token=0.04 if number == 1 else 0.01)]
    rows = TickTransaction(
        replica_samples=samples,
        replica_changes=[change(number, 0.5, ReplicaState.ATTACHED) for number in range(3)],
        engine_series=sorted(series, key=lambda each: each.at),
    )
    recorder.commit(rows)
    recorder.close(RunEnd(at=SECONDS, exit_code=0, reason=""))
    return path


def test_the_summary_names_the_slower_server_with_its_time_and_no_other(tmp_path: Path) -> None:
    summary = watch_summary(RecordingReader.open(recorded(tmp_path / "watch.servetop")))
    assert summary.replicas is not None
    limits = {each.name: each.watched.limits for each in summary.replicas if each.watched is not None}
    (limit,) = limits.pop("gpu1")
    assert limit.name == "slower than the others"
    assert FULL_FROM <= limit.onset <= FULL_FROM + 5
    assert abs(limit.seconds - (SECONDS - FULL_FROM)) <= 5
    assert limits == {"gpu0": (), "gpu2": ()}
    assert summary.headline.startswith("gpu1: slower than the others for 0:3")
    assert summary.headline.endswith("; 2 other servers reached no limit")


def watch(number: int, *limits: str) -> ReplicaWatch:
    known = tuple(WatchedLimit(name=name, seconds=10.0 + number, onset=5.0) for name in limits)
    figures = WatchedFigures(
        seconds=60.0, seconds_without_metrics=0.0, limits=known, requests=None, request_throughput=None,
        output_throughput=None, prompt_throughput=None, mean_ttft_ms=None, mean_tpot_ms=None, mean_e2el_ms=None,
        mean_queue_ms=None, requests_ended=None, requests_failed=None, error_rate=None,
    )  # fmt: skip
    counters = dict.fromkeys(WatchedServer.__dataclass_fields__)
    return ReplicaWatch(
        replica=number, name=f"10.0.0.{number}", url="", state="attached", reason=None, restarts=0, backend=None,
        version=None, model_id=None, differs=None, headline=f"{', '.join(limits)} for 0:{10 + number} of 1:00",
        p90_ttft_ms=None, server=WatchedServer(**counters),
        watched=figures,
    )  # fmt: skip


def test_many_servers_with_one_limit_are_one_short_verdict_with_the_worst_first() -> None:
    replicas = [*(watch(number, "requests wait") for number in range(45)), watch(45, "KV-bound"), watch(46)]
    assert fleet_headline(replicas, None) == (
        "45 servers: requests wait (10.0.0.44, 10.0.0.43, 10.0.0.42 and 42 more), the longest requests wait for 0:54 "
        "of 1:00; 10.0.0.45: KV-bound for 0:55 of 1:00; 1 other server reached no limit"
    )


def test_a_server_that_never_responded_is_said_once_with_why() -> None:
    reason = "nothing answers at http://c:8000 (connection refused): is the server up? try: curl http://c:8000/health"
    silent = replace(
        watch(2), name="c", watched=None, state="gone", reason=reason,
        headline="nothing answers at http://c:8000 (connection refused)",
    )  # fmt: skip
    headline = fleet_headline([watch(0), watch(1), silent], None)
    assert headline == "c: nothing answers at http://c:8000 (connection refused); 2 other servers reached no limit"
    lost = replace(watch(3), name="d", state="gone", reason="it stopped responding (connection refused)")
    many = [replace(lost, name=f"e{number}", url=f"http://e{number}") for number in range(9)]
    assert [*server_remarks([silent, lost], headline)] == ["d: no response; it stopped responding (connection refused)"]
    assert [*server_remarks(many, "")] == [
        "9 servers (e0, e1, e2 and 6 more): no response; it stopped responding (connection refused)"
    ]
    never = [replace(silent, name=f"e{number}") for number in range(50)]
    assert fleet_headline(never, None) == "50 servers: no metrics were read (e0, e1, e2 and 47 more)"
