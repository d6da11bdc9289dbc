"""Predictions of sweep files: presets, variants, and the workload that a run sends."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from servetop.cli.configuration.prediction import predict_specs, spec_of_engine
from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.cli.sweep_command import predicted_cells
from servetop.core.arrays import FloatArray
from servetop.core.errors import UsageError
from servetop.run.sweep.presets import preset_names
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.workload.build import prompts_for
from servetop.workload.stages.stage_draws import DrawSeeds
from tests.simulator.predict.cells import results, stored


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_describes_cells_that_start(name: str) -> None:
    specs = predict_specs(name)
    assert specs
    for spec in specs:
        keys = {key: value for key, value in spec.settings.items() if key != "padded_input_tokens"}
        build_scheduler(sim_spec(spec.model, gpu=spec.gpu, engine=spec.engine_profile, settings=keys))


VARIANTS = """
max_num_seqs = [64, 128]
request_rate = [1, "inf"]
num_prompts = 7
[engine]
model = "opt-1.3b"
[workload]
input_len = 10
arrivals = "constant"
[sim]
gpu = "h100"
settings = { c1 = 1e-4, c0 = 0.0 }
[[sim.variants]]
label = "a"
[[sim.variants]]
gpu = "l4"
lengths = "normal"
max_num_seqs = 3
"""


def test_each_variant_is_the_file_with_some_keys_replaced_and_settings_win(tmp_path: Path) -> None:
    first, second = predict_specs(stored(tmp_path, VARIANTS), settings={"c1": "2e-4", "seed": "5"})
    assert (first.label, first.gpu, first.model) == ("a", "h100", "opt-1.3b")
    assert (second.label, second.gpu, second.workload.input_len) == ("grid", "l4", 10)
    assert [(stage.max_num_seqs, stage.request_rate) for stage in first.stages] == [
        *((64, 1.0), (64, math.inf), (128, 1.0), (128, math.inf))
    ]
    assert [stage.max_num_seqs for stage in second.stages] == [3, 3]
    assert (first.workload.lengths, second.workload.lengths, second.workload.arrivals) == ("", "normal", "constant")
    assert first.settings["c1"] == "2e-4"
    assert first.seed == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[sim]\ngpus = "l4"', r"unknown key 'gpus' in \[sim\]: did you mean 'gpu'\?"),
        ('[sim]\nlengths = "sharegpt"', r"unknown key 'lengths' in \[sim\]: state the load once"),
        ('[[sim.variants]]\nlenghts = "normal"', "variant 1 of .sim.: unknown key 'lenghts': did you mean 'lengths'"),
        ('[[sim.variants]]\nlengths = "norml"', "unknown 'norml': did you mean normal"),
    ],
)
def test_an_unknown_key_of_the_simulator_table_is_rejected(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        predict_specs(stored(tmp_path, f"request_rate = 1\nnum_prompts = 3\n{text}"))


GRID = """
max_num_seqs = [16, 64]
request_rate = [4, 8]
num_prompts = 60
[workload]
lengths = "{lengths}"
[sim]
gpu = "a100-40"
"""
THROUGHPUT_BY_SEED, PREEMPTED = [618, 639, 745, 793], 5
"""Output tokens/s of the cells, and preemptions of the last one, that means of 1000 and 300 tokens make (seed 0)."""


def predicted(folder: Path, lengths: str) -> tuple[FloatArray, FloatArray]:
    """Output tokens/s by seed and cell, and preemptions of the last cell by seed."""
    file = stored(folder, GRID.format(lengths=lengths))
    runs = [results(predict_specs(file, settings={"seed": str(seed)})) for seed in range(20)]
    rates = np.array([[result.output_throughput for result in run] for run in runs])
    return rates, np.array([float(run[-1].preemptions) for run in runs])


def test_predicted_cells_use_the_lengths_of_the_workload(tmp_path: Path) -> None:
    rates, preemptions = predicted(tmp_path, "fixed:input=1000,output=300")
    assert (abs(rates.mean(axis=0) - THROUGHPUT_BY_SEED) < 2 * rates.std(axis=0)).all()
    assert preemptions.min() <= PREEMPTED <= preemptions.max()


def test_a_cell_serves_the_requests_that_a_run_sends(tmp_path: Path) -> None:
    lengths = "lognormal:input_mean=1000,output_mean=300"
    (spec,) = predict_specs(stored(tmp_path, GRID.format(lengths=lengths)))
    draws = DrawSeeds(spec.workload, seed=spec.seed, sweep=True)
    for stage, result in zip(spec.stages, results([spec]), strict=True):
        prompts = prompts_for(spec.workload, draws.next(stage).prompts).prompts()
        sent = [prompt.input_tokens + prompt.output_tokens for prompt in itertools.islice(prompts, 60)]
        served = [tokens for tokens in sent if tokens <= 4096]
        assert (result.completed, result.refused) == (len(served), 60 - len(served))
        assert result.total_token_throughput * result.duration == pytest.approx(sum(served))


def test_warm_ups_and_repeats_do_not_change_the_requests_of_a_cell(tmp_path: Path) -> None:
    grid = GRID.format(lengths="lognormal:input_mean=100,output_mean=30")
    whole, warmed = (
        results(predict_specs(stored(tmp_path, text)))
        for text in (grid, grid.replace("num_prompts = 60", "num_prompts = 60\nrepeats = 2\nnum_warmups = 60"))
    )
    tokens = [[round(result.output_throughput * result.duration) for result in run] for run in (whole, warmed)]
    assert len(warmed) == 2 * len(whole)
    assert tokens[1][::2] == tokens[0]
    assert tokens[0][:2] == tokens[0][2:]  # the batch sizes of one rate send the same
    assert tokens[1][1] != tokens[1][0]


def test_the_tail_of_log_normal_lengths_lowers_the_throughput(tmp_path: Path) -> None:
    rates, _ = predicted(tmp_path, "lognormal:input_mean=1000,output_mean=300")
    narrow, _ = predicted(tmp_path, "lognormal:input_mean=1000,input_sigma=0.05,output_mean=300,output_sigma=0.05")
    assert (abs(narrow.mean(axis=0) / THROUGHPUT_BY_SEED - 1) < 0.05).all()
    assert (rates.mean(axis=0) < 0.9 * narrow.mean(axis=0)).all()


@pytest.mark.parametrize(
    ("sim", "message"),
    [
        ("sim = 3", r"sim = 3: write a table"),
        ("[sim]\ngpu = 40", r"\[sim\].gpu: 40 is"),
        ('[sim]\nreplicas = "two"', r"\[sim\].replicas: 'two' is"),
        ("[sim]\nvariants = 2", r"write \[\[sim.variants\]\]"),
    ],
)
def test_a_value_of_a_wrong_type_in_the_simulator_table_is_rejected(tmp_path: Path, sim: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        predict_specs(stored(tmp_path, f"request_rate = 1\nnum_prompts = 3\n{sim}"))


def test_the_model_of_the_command_line_is_predicted_or_reported_as_unsupported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = stored(tmp_path, "max_num_seqs = 4\nrequest_rate = inf\nnum_prompts = 20\n[sim]\n")
    config = sweep_config(read_sweep(file))
    (large,), (small,) = predicted_cells(file, config), predicted_cells(file, config, model="opt-125m")
    assert small.output_throughput > 2 * large.output_throughput
    assert predicted_cells(file, config, model="no-such-model") == ()
    assert "no prediction" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("preset", "engine", "profile"),
    [
        ("whitepaper-3", "tgi", "tgi-2024"),
        ("whitepaper-3", "vllm", "vllm-0.2.1"),
        ("whitepaper-3", "sglang", "vllm-0.2.1"),  # no variant: that of the file's own engine
        ("whitepaper-5", "tensorrt-llm", "tensorrt-llm-2024"),
        ("whitepaper-1-tensorrt-llm", "vllm", "tensorrt-llm-2024"),  # without variants
        ("whitepaper-4", "vllm", None),  # the variants do not tell their engine
    ],
)
def test_the_prediction_beside_a_sweep_is_that_of_the_variant_of_its_engine(
    preset: str, engine: str, profile: str | None
) -> None:
    spec = spec_of_engine(preset, engine)
    assert (None if spec is None else spec.engine_profile) == profile


ENGINES = """
request_rate = [8, 16]
num_prompts = 20
engine = "tgi"
[[sim.variants]]
label = "small batches"
engine = "vllm"
max_num_seqs = 4
[[sim.variants]]
label = "another"
engine = "tgi"
engine_profile = "tgi-2024"
"""


def test_a_variant_may_set_the_batch_size_that_the_sweep_leaves_to_the_engine(tmp_path: Path) -> None:
    file = stored(tmp_path, ENGINES)
    cells = predicted_cells(file, sweep_config(read_sweep(file, {"engine": "vllm"})))
    assert [(each.max_num_seqs, each.request_rate) for each in cells] == [(4, 8.0), (4, 16.0)]
    several = stored(tmp_path, ENGINES.replace("max_num_seqs = 4", "max_num_seqs = [4, 8]"))
    assert predicted_cells(several, sweep_config(read_sweep(several, {"engine": "vllm"}))) == ()


def test_at_a_url_the_prediction_limits_the_concurrency_as_the_sweep_does(tmp_path: Path) -> None:
    file = stored(tmp_path, "max_num_seqs = [2, 4]\nrequest_rate = 50\nnum_prompts = 30\n[sim]\n")
    started = predicted_cells(file, sweep_config(read_sweep(file)))
    attached = predicted_cells(file, sweep_config(read_sweep(file, {"url": "http://127.0.0.1:1"})))
    assert [(each.max_num_seqs, each.max_concurrency) for each in started] == [(2, None), (4, None)]
    assert [each.max_concurrency for each in attached] == [2, 4]
    assert [each.output_throughput for each in attached] == pytest.approx(
        [each.output_throughput for each in started], rel=0.05
    )
