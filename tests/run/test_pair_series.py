"""A series of pairs alternates, stops at an answer or at its limits, and is resumed from its folder."""

from __future__ import annotations

import dataclasses
import functools
import math
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from servetop.analysis.comparison.compared_metrics import metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.verdicts import Verdict
from servetop.core.clock import ClockAnchor, ManualClock
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import ExitCode, RecordingError, UsageError
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.write.recorder import Recorder
from servetop.run.pairs.pair_series import PairSeries, PlayedRun, SeriesEnd, SeriesPlan, SeriesState
from servetop.run.pairs.series_folder import DISCARDED, ArmConfigs, SeriesFolder, read_run
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, VirtualRunPlan
from tests.judgement.recordings import write_recording

RUN_SECONDS = 10.0
CONFIG = RunConfig(
    engine=EngineConfig(name="sim"),
    workload=WorkloadConfig(input_len=8, output_len=4),
    stages=(StageConfig(request_rate=16, num_prompts=16),),
)
USUAL_CLIENT, SLOW_CLIENT = ClientCosts(), ClientCosts(slow_from=0.0, slowdown=2000)
TTFT = metric_named("mean_ttft_ms")


def config(label: str) -> RunConfig:
    return dataclasses.replace(CONFIG, label=label)


@functools.cache
def recorded(label: str, seed: int, client: ClientCosts = USUAL_CLIENT, code: int = 0) -> bytes:
    """The recording of a virtual run; `slow` has an engine of half the speed, `noisy` one that varies with the seed."""
    factor = {"slow": 2.0, "noisy": 1.0 + 0.04 * (-1) ** seed}.get(label, 1.0)
    plan = VirtualRunPlan(config=dataclasses.replace(config(label), seed=seed), client=client)
    profile = plan.spec.engine
    run = run_virtually(
        dataclasses.replace(plan, settings={"c0": 0.01 * factor, "c1": profile.c1}),
    )
    end = RunEnd(
        at=RUN_SECONDS if client != SLOW_CLIENT else run.end.at,
        exit_code=code,
        reason="the engine did not start" if code else "",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.servetop"
        write_recording(dataclasses.replace(run, end=end), path)
        return path.read_bytes()


class Engines:
    """Plays virtual runs in no time, and notes which; `faults` has the runs that go wrong, by position."""

    def __init__(self, faults: Mapping[int, str] | None = None) -> None:
        self.clock = ManualClock()
        self.played: list[tuple[str, int]] = []
        self._faults = faults or {}

    def play(self, config: RunConfig, recording: Path) -> PlayedRun:
        fault = self._faults.get(len(self.played), "")
        self.played.append((recording.name[0], config.seed))
        self.clock.advance_to(self.clock.now() + RUN_SECONDS)
        recording.parent.mkdir(exist_ok=True)
        if fault == "no recording":
            return PlayedRun(exit_code=2, reason="the disk is full")
        if fault == "fails":
            recording.write_bytes(recorded(config.label, config.seed, code=3))
            return PlayedRun(exit_code=3, reason="")
        if fault == "interrupted":
            recording.write_bytes(recorded(config.label, config.seed, code=130))
            return PlayedRun(exit_code=130, reason="")
        client = SLOW_CLIENT if fault == "busy client" else USUAL_CLIENT
        recording.write_bytes(recorded(config.label, config.seed, client, code=99 if fault else 0))
        return PlayedRun(exit_code=0, reason="")


class Heard:
    """Keeps what a series says."""

    def __init__(self) -> None:
        self.discarded: list[tuple[str, bool]] = []
        self.states: list[SeriesState] = []

    def run_begins(self, pair: int, arm: str, *, seed: int, recording: Path) -> None:
        assert recording.name == f"{arm}-{pair:03d}.servetop"
        assert seed == 100 + pair

    def run_discarded(self, recording: Path | None, *, reason: str, again: bool) -> None:
        assert recording is None or recording.exists()
        self.discarded.append((reason, again))

    def pair_measured(self, state: SeriesState) -> None:
        self.states.append(state)


def plan(b: str = "slow", *, budget: float = math.inf, pairs: int | None = None) -> SeriesPlan:
    assert TTFT is not None
    return SeriesPlan(
        configs=ArmConfigs(a=config("usual"), b=config(b)),
        options=ComparisonOptions(metrics=(TTFT,)),
        seed=100,
        budget=budget,
        pairs=pairs,
    )


@pytest.fixture
def folder(tmp_path: Path) -> SeriesFolder:
    return SeriesFolder(tmp_path / "series")


def series(of: SeriesPlan, folder: SeriesFolder, engines: Engines, heard: Heard | None = None) -> PairSeries:
    return PairSeries(of, folder, play=engines.play, observer=heard or Heard(), clock=engines.clock)


def test_runs_alternate_with_equal_seeds_until_the_answer(folder: SeriesFolder) -> None:
    engines = Engines()
    result = series(plan(), folder, engines).measure()
    assert (result.end, result.exit_code) == (SeriesEnd.ANSWERED, ExitCode.OK)
    assert [each.verdict for each in result.state.metrics] == [Verdict.WORSE]
    assert engines.played[:6] == [("a", 101), ("b", 101), ("b", 102), ("a", 102), ("a", 103), ("b", 103)]
    assert result.state.pairs == len(engines.played) / 2 in (3, 4, 6)
    assert len(folder.recordings()) == len(engines.played)


def test_equal_engines_are_answered_at_the_first_look(folder: SeriesFolder) -> None:
    engines, heard = Engines(), Heard()
    result = series(plan(b="equal"), folder, engines, heard).measure()
    assert [each.verdict for each in result.state.metrics] == [Verdict.NO_DIFFERENCE]
    assert [state.pairs for state in heard.states] == [1, 2, 3]
    assert heard.states[0].seconds_left(math.inf) == 4 * RUN_SECONDS
    assert (result.state.seconds, result.state.pair_seconds) == (60.0, 20.0)


def test_no_pair_is_begun_that_reaches_no_look_within_the_limits(folder: SeriesFolder) -> None:
    engines = Engines()
    result = series(plan(b="noisy", pairs=5), folder, engines).measure()
    assert (result.end, result.exit_code, result.state.pairs) == (SeriesEnd.PAIRS, ExitCode.CANNOT_TELL, 4)
    (metric,) = result.state.metrics
    assert metric.needed is not None
    assert metric.needed > 4
    shutil.rmtree(folder.path)
    result = series(plan(b="noisy", budget=119.0), folder, Engines()).measure()
    assert (result.end, result.state.pairs, result.state.seconds) == (SeriesEnd.BUDGET, 4, 80.0)


def test_a_failed_run_is_repeated_once_and_kept_apart(folder: SeriesFolder) -> None:
    heard = Heard()
    result = series(plan(b="equal"), folder, Engines({1: "fails"}), heard).measure()
    assert result.end is SeriesEnd.ANSWERED
    assert heard.discarded == [("the engine did not start", True)]
    assert [each.name for each in (folder.path / DISCARDED).iterdir()] == ["b-001-1.servetop"]


@pytest.mark.parametrize(("fault", "code"), [("fails", 3), ("no recording", 2)])
def test_a_run_that_fails_twice_ends_the_series(folder: SeriesFolder, fault: str, code: int) -> None:
    engines = Engines({2: fault, 3: fault})
    result = series(plan(), folder, engines).measure()
    assert (result.end, result.exit_code, result.state.pairs) == (SeriesEnd.FAILED, code, 1)
    assert result.reason in ("the engine did not start", "the disk is full")
    assert len(engines.played) == 4


def test_a_run_whose_client_was_the_bottleneck_does_not_count(folder: SeriesFolder) -> None:
    heard = Heard()
    faults = dict.fromkeys((0, 1, 3, 4, 5), "busy client")
    result = series(plan(), folder, Engines(faults), heard).measure()
    assert [again for _, again in heard.discarded] == [True, True, True, True, False]
    assert all(reason.startswith("the client was the bottleneck: ") for reason, _ in heard.discarded)
    assert (result.end, result.exit_code) == (SeriesEnd.FAILED, ExitCode.THRESHOLDS)


def test_a_run_that_only_missed_a_threshold_counts(folder: SeriesFolder) -> None:
    path = folder.path / "a-001.servetop"
    folder.path.mkdir()
    path.write_bytes(recorded("usual", 101, code=99))
    assert read_run(path).measured is not None


def test_an_interrupted_series_is_resumed_to_the_same_answer(folder: SeriesFolder, tmp_path: Path) -> None:
    whole = series(plan(), SeriesFolder(tmp_path / "whole"), Engines()).measure()
    cut = series(plan(), folder, Engines({3: "interrupted"})).measure()
    assert (cut.end, cut.exit_code, cut.state.pairs) == (SeriesEnd.INTERRUPTED, ExitCode.INTERRUPTED, 1)
    for arm in "ab":
        folder.recording(arm, 2).write_bytes(recorded("slow", 103)[:4096])  # killed while it was written
    engines, heard = Engines(), Heard()
    resumed = series(plan(), folder, engines, heard).measure(resume=True)
    assert heard.states[0].pairs == 1
    assert engines.played[0] == ("b", 102)
    assert resumed.state.seconds == whole.state.seconds
    assert [each.differences for each in resumed.state.metrics] == [each.differences for each in whole.state.metrics]
    assert resumed.end is whole.end
    again = Engines()
    assert series(plan(), folder, again).measure(resume=True).end is whole.end
    assert again.played == []


def test_a_series_of_another_configuration_is_not_resumed(folder: SeriesFolder) -> None:
    series(plan(b="equal"), folder, Engines()).measure()
    with pytest.raises(UsageError, match="--resume"):
        folder.check_new()
    with pytest.raises(RecordingError, match="another configuration"):
        series(plan(), folder, Engines()).measure(resume=True)


def test_a_series_that_is_being_measured_is_not_resumed(folder: SeriesFolder) -> None:
    header = RunHeader(config=CONFIG, anchor=ClockAnchor.take())
    recorder = Recorder.create(folder.recording("b", 1), header)
    with pytest.raises(RecordingError, match="still being written"):
        series(plan(), folder, Engines()).measure(resume=True)
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
