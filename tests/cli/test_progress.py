"""The progress of a headless run."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.analysis.cells.attempts import RESUMED
from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.cli.headless.headless_progress import HeadlessProgress
from servetop.cli.headless.progress import BootLog, DoneShare, LineProgress, Plan, status_line
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig
from servetop.core.config_values.search_config import SearchConfig
from servetop.core.events import Note, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.library.run_sessions import first_of_session
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

RUNNING = TickHistory(Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=0))) for index in range(4 * 20))
LOADING = TickHistory(Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=-1))) for index in range(4 * 200))


def test_stages_are_weighted_by_duration() -> None:
    done = DoneShare([StageConfig(duration=10.0), StageConfig(duration=30.0)])
    seen = [done.after(stage, at, 0) for stage, at in [(-1, 1.0), (0, 2.0), (0, 7.0), (1, 12.0), (1, 27.0), (1, 90.0)]]
    assert seen == pytest.approx([0.0, 0.0, 0.125, 0.25, 0.625, 1.0])


def test_stages_without_a_duration_have_equal_weight() -> None:
    done = DoneShare([StageConfig(num_prompts=100), StageConfig(num_prompts=10, duration=60.0)])
    seen = [done.after(stage, at, finished) for stage, at, finished in [(0, 0.0, 0), (0, 3.0, 50), (1, 9.0, 100)]]
    assert seen == pytest.approx([0.0, 0.25, 0.5])
    assert done.after(1, 24.0, 105) == pytest.approx(0.75), "ten requests or a minute, whichever is further"


def test_a_stage_added_during_the_run_is_past_the_plan() -> None:
    done = DoneShare([StageConfig(duration=10.0)])
    assert done.after(1, 5.0, 10) == 1.0


def test_each_log_line_of_a_loading_engine_is_shown_once_and_then_its_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress, boot = LineProgress(Plan.of(RunConfig())), BootLog()
    long_line = "INFO Loading safetensors checkpoint shards: 1/3 " + "x" * 300
    for half_seconds in range(2, 200):
        at = half_seconds / 2
        if at == 10.0:
            boot.add([long_line], at)
        if at == 80.0:
            boot.add(["INFO Loading safetensors checkpoint shards: 2/3"], at)
        progress.show(live_stats(LOADING, at, span=1.0), boot)
    printed = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in printed] == ["0:01", "0:10", "0:40", "1:10", "1:20"]
    assert printed[1].startswith("0:10  engine is loading  loading weights 1/3  INFO Loading safetensors checkpoint")
    assert len(printed[1]) < 160
    assert printed[2] == "0:40  engine is loading  loading weights 1/3  (no new line for 30 s)"
    assert "2/3" in printed[4]


def test_statistics_are_computed_only_for_printed_lines(capsys: pytest.CaptureFixture[str]) -> None:
    progress, boot = LineProgress(Plan.of(RunConfig())), BootLog()
    due = []
    for half_seconds in range(2, 40):
        at = half_seconds / 2
        if progress.due(at, loading=False, boot=boot):
            due.append(at)
            progress.show(live_stats(RUNNING, at, span=1.0), boot)
    assert due == [1.0, 6.0, 11.0, 16.0]
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_a_run_that_attaches_does_not_load_an_engine() -> None:
    plan = Plan.of(RunConfig(engine=EngineConfig(name="vllm", url="http://gpu7:8000")))
    assert status_line(live_stats(LOADING, 3.0), plan, boot="") == "0:03  attaching to the server"


@pytest.mark.parametrize(
    ("stage", "shown"),
    [(3, "engine is loading"), (4, "stage 1/3, 0:02 to come │"), (6, "stage 3/3 │"), (7, "stage 4/4")],
)
def test_the_stages_of_a_resumed_run_are_counted_from_its_resumption(stage: int, shown: str) -> None:
    ticks = [Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=stage))) for index in range(8)]
    plan = Plan.of(RunConfig(stages=(StageConfig(duration=1.0),) * 3), first=4)
    assert shown in status_line(live_stats(TickHistory(ticks), 2.0), plan, boot="")


def test_the_loads_of_a_search_are_probes_of_an_unknown_number() -> None:
    search = SearchConfig(slo=("p99_ttft<500ms",), low=1.0, high=9.0, budget=60.0)
    plan = Plan.of(RunConfig(stages=(StageConfig(duration=1.0),), search=search))
    assert plan.budget == 60.0
    ticks = [Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=2))) for index in range(8)]
    assert status_line(live_stats(TickHistory(ticks), 2.0), plan, boot="").startswith("0:02  probe 3 │")


def test_each_note_of_a_search_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = RunHeader(config=RunConfig(), anchor=ClockAnchor.take())
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    note = Note(at=92.0, severity=Severity.INFO, source="search", text="8 req/s for 20 s: 99 % within")
    recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=0)), notes=[note]))
    HeadlessProgress(header.config, recorder.path).close()
    recorder.close(RunEnd(at=93.0, exit_code=0, reason=""))
    assert "1:32  8 req/s for 20 s: 99 % within" in capsys.readouterr().err.splitlines()


def test_a_session_starts_after_the_stages_of_the_previous_one() -> None:
    stages = [
        StageChange(at=at, index=index, label="", request_rate=1.0, max_concurrency=None, max_num_seqs=None)
        for index, at in enumerate((1.0, 5.0, 12.0))
    ]
    resumed = Note(at=8.0, severity=Severity.INFO, source=RESUMED, text="resumed")
    assert first_of_session(stages, []) == 0
    assert first_of_session(stages[:2], [resumed]) == 2
    assert first_of_session(stages, [resumed]) == 2


def test_warnings_of_an_earlier_session_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = RunHeader(config=RunConfig(), anchor=ClockAnchor.take())
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    notes = [
        Note(at=2.0, severity=Severity.WARNING, source="engine", text="of yesterday"),
        Note(at=8.0, severity=Severity.INFO, source=RESUMED, text="resumed"),
        Note(at=9.0, severity=Severity.WARNING, source="engine", text="of today"),
    ]
    recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=0)), notes=notes))
    progress = HeadlessProgress(header.config, recorder.path)
    progress.close()
    recorder.close(RunEnd(at=10.0, exit_code=0, reason=""))
    reported = capsys.readouterr().err
    assert "warning: engine: of today" in reported
    assert "of yesterday" not in reported
