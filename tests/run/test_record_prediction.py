"""A recorded prediction is sound, says that it is predicted, and has the figures of the prediction."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.reports.summary.summary import run_summary
from servetop.run.record_prediction import check_recordable, record_prediction
from servetop.simulator.predict.predict import PredictSpec, predict

VARIED = WorkloadConfig(input_len=200, output_len=100, lengths="lognormal")
TURNS = WorkloadConfig(num_turns="3", think_time="0.5", input_len=50, output_len=20)
OPEN, CLOSED = StageConfig(request_rate=12.0, num_prompts=80), StageConfig(max_concurrency=10, num_prompts=80)
ENGINES = tuple(
    replace(OPEN, num_prompts=40, request_rate=rate, settings=settings)
    for settings in ({"engine.args.kv-blocks": "300"}, {"model": "opt-1.3b"})
    for rate in (12.0, 24.0)
)
DIFFERENT = (
    replace(CLOSED, settings={"input_len": 64, "output_len": 32}),
    replace(OPEN, settings={"arrivals": "constant", "input_len": 300}),
    replace(OPEN, settings={"engine.args.kv-blocks": "300", "input_len": 100, "seed": 4}),
)
LENGTHS = tuple(replace(OPEN, settings={"input_len": each}) for each in (64, 128))
LIMITED = tuple(StageConfig(request_rate=rate, num_prompts=40, max_num_seqs=8) for rate in (3.0, 9.0))


def recorded_summary(spec: PredictSpec, path: Path) -> dict[str, Any]:
    record_prediction(spec, path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return summary_json(run_summary(reader))


@pytest.mark.parametrize(
    "spec",
    [
        PredictSpec(stages=(OPEN,), workload=VARIED, settings={"kv_blocks": 500}, goodput={"ttft": 0.1}),
        PredictSpec(stages=(CLOSED,), workload=VARIED, seed=7),
        PredictSpec(stages=(CLOSED,), workload=TURNS),
        PredictSpec(stages=(StageConfig(num_prompts=80),)),
        PredictSpec(stages=(OPEN,), replicas=2),
        PredictSpec(stages=LIMITED),
        PredictSpec(stages=ENGINES, workload=VARIED),
        PredictSpec(stages=ENGINES, replicas=2),
        PredictSpec(stages=LENGTHS, workload=VARIED),
        PredictSpec(stages=DIFFERENT, workload=VARIED, goodput={"ttft": 0.1}),
    ],
)
def test_the_summary_has_the_figures_of_the_prediction(spec: PredictSpec, tmp_path: Path) -> None:
    stages = recorded_summary(spec, tmp_path / "a.servetop")["stages"]
    cells = predict(spec).cells
    assert len(stages) == len(cells)
    for stage, cell in zip(stages, cells, strict=True):
        result = cell.result
        assert result is not None
        assert (stage["completed"], stage["preemptions"]) == (result.completed, result.preemptions)
        assert stage["output_throughput"] == pytest.approx(result.output_throughput, rel=1e-4)
        for name, latency in {"ttft": result.ttft_ms, "itl": result.itl_ms, "e2el": result.e2el_ms}.items():
            found = [stage[f"{statistic}_{name}_ms"] for statistic in ("mean", "median", "p99")]
            assert found == pytest.approx([latency.mean, latency.p50, latency.p99], rel=2e-3), name


def test_the_recording_is_sound_and_says_that_it_is_predicted(tmp_path: Path) -> None:
    path = tmp_path / "a.servetop"
    summary = recorded_summary(PredictSpec(stages=(OPEN,)), path)
    assert (summary["predicted"], summary["exit_code"], summary["recording_state"]) == (True, 0, "finished")
    assert verify(path).verdict is VerifyVerdict.SOUND
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.header.predicted
        assert reader.header.versions["servetop"]


def test_engines_follow_each_other_in_one_recording_with_a_restart_between_them(tmp_path: Path) -> None:
    path = tmp_path / "a.servetop"
    cells = (*ENGINES, *(replace(stage, repeat=1) for stage in ENGINES))
    summary = recorded_summary(PredictSpec(stages=cells), path)
    assert verify(path).verdict is VerifyVerdict.SOUND
    assert [stage["stage"] for stage in summary["stages"]] == list(range(8))
    starts, ends = ([stage[name] for stage in summary["stages"]] for name in ("start", "end"))
    assert starts == sorted(starts)
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert [stage["settings"] for stage in summary["stages"]] == [stage.settings for stage in cells]
    assert summary["completed"] == 8 * 40
    assert {cell["starts"] for cell in summary["sweep"]["cells"]} == {2}
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.header.engine is not None
        assert reader.header.engine.model == "opt-1.3b"  # as in a measured run, that of the last engine
        assert [note.text for note in reader.notes() if note.source == "engine"] == [
            "--kv-blocks 300 → opt-1.3b: restarting the engine",
            "opt-1.3b → --kv-blocks 300: restarting the engine",
            "--kv-blocks 300 → opt-1.3b: restarting the engine",
        ]
        assert len({request.id for request in reader.requests(0.0, 1e9, most=1000)}) == 8 * 40


def test_cells_of_different_requests_follow_each_other_on_one_engine_with_their_own_settings(tmp_path: Path) -> None:
    path = tmp_path / "a.servetop"
    summary = recorded_summary(PredictSpec(stages=LENGTHS, workload=VARIED), path)
    assert verify(path).verdict is VerifyVerdict.SOUND
    assert [stage["settings"] for stage in summary["stages"]] == [{"input_len": 64}, {"input_len": 128}]
    first, second = summary["stages"]
    assert first["end"] <= second["start"]
    assert second["total_input_tokens"] > 1.5 * first["total_input_tokens"]
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert not [note for note in reader.notes() if note.source == "engine"]


def test_repeats_with_starts_of_their_own_are_parts_with_a_restart_between_them(tmp_path: Path) -> None:
    path = tmp_path / "a.servetop"
    stages = tuple(replace(OPEN, repeat=repeat) for repeat in range(3))
    summary = recorded_summary(PredictSpec(stages=stages, restart="repeats"), path)
    assert [stage["repeat"] for stage in summary["stages"]] == [0, 1, 2]
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.header.config.restart == "repeats"
        assert [note.text for note in reader.notes() if note.source == "engine"] == [
            f"repeat {each} → {each + 1}: restarting the engine" for each in (1, 2)
        ]


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ([PredictSpec(), PredictSpec()], "this file has 2 variants"),
        ([PredictSpec(workload=WorkloadConfig(n=2))], "one completion a request"),
        ([PredictSpec(workload=WorkloadConfig(cancel_fraction=0.5))], "cancels none"),
        (
            [PredictSpec(workload=WorkloadConfig(arrivals="in-process-burst"))],
            "give --arrivals burst, or write arrivals = .burst. into",
        ),
        ([PredictSpec(settings={"time_scale": "0.1"})], "leave out --set time_scale"),
        ([PredictSpec(stages=(OPEN, replace(OPEN, settings={"n": 2})))], "one completion a request"),
    ],
)
def test_what_no_recording_can_show_is_refused(specs: list[PredictSpec], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        check_recordable(specs, tmp_path / "a.servetop")


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.servetop"
    path.write_text("mine")
    with pytest.raises(RecordingError, match="already exists: remove it, or choose another file with --record"):
        check_recordable([PredictSpec()], path)
    assert path.read_text() == "mine"
