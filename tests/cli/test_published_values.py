"""The table `[published]` of a sweep file: what a study measured in the same cells (simulator/data/whitepaper)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from servetop.cli.configuration.published_values import published_study
from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.core.config import RunConfig, from_data, to_data
from servetop.core.config_values.published_study import PublishedStudy
from servetop.core.errors import UsageError
from servetop.run.sweep.presets import preset_names, sweep_data

Figures = dict[tuple[int | None, float], tuple[float | None, float | None]]


def study(name: str, **engine: str) -> PublishedStudy:
    config = sweep_config(read_sweep(name, engine))
    found = published_study(name, config.engine, config.stages)
    assert found is not None
    return found


def figures(found: PublishedStudy) -> Figures:
    return {
        (each.max_num_seqs or each.max_concurrency, each.request_rate): (each.output_throughput, each.preemptions)
        for each in found.cells
    }


def test_a_preset_has_the_figures_of_its_table_by_cell() -> None:
    found = study("whitepaper-1")
    assert (found.source, found.set_up) == ("Run:ai whitepaper, Table 4", "vLLM 0.2.1, Llama-2-7b, A100 40 GB")
    assert len(found.cells) == 28
    assert figures(found)[64, 32] == (2272, None)
    assert figures(found)[192, 64] == (2852, None)


def test_a_study_of_preemptions_has_those() -> None:
    found = figures(study("whitepaper-2"))
    assert len(found) == 11
    assert (found[128, 64], found[256, 64]) == ((None, 0), (None, 1750))


@pytest.mark.parametrize(
    ("engine", "set_up", "rate", "tokens"),
    [
        ("vllm", "vllm, Llama-2-7b, A100 40 GB", 8.0, 1454),
        ("tgi", "tgi, Llama-2-7b, A100 40 GB", 8.0, 1509),
        ("sglang", "vllm, Llama-2-7b, A100 40 GB", 8.0, 1454),  # not in the study: the part of the file's own engine
    ],
)
def test_of_a_table_of_several_engines_the_part_of_the_measured_one_is_taken(
    engine: str, set_up: str, rate: float, tokens: float
) -> None:
    found = study("whitepaper-3", engine=engine)
    assert found.set_up == set_up
    assert figures(found)[None, rate] == (tokens, None)


def test_published_figures_that_contradict_others_are_marked() -> None:
    suspect = {each.request_rate for each in study("whitepaper-3", engine="tgi").cells if each.suspect}
    assert suspect == {4.0}


def test_at_a_url_the_concurrency_takes_the_place_of_the_batch_size() -> None:
    found = study("whitepaper-1", url="http://127.0.0.1:1")
    assert {each.max_num_seqs for each in found.cells} == {None}
    assert figures(found) == figures(study("whitepaper-1"))


@pytest.mark.parametrize("name", [name for name in preset_names() if "published" in sweep_data(name)])
def test_every_table_of_a_preset_has_figures_of_its_cells(name: str) -> None:
    planned = {stage.request_rate for stage in sweep_config(read_sweep(name)).stages}
    assert {each.request_rate for each in study(name).cells} == planned


def test_a_recording_has_the_figures_in_its_configuration() -> None:
    config = dataclasses.replace(sweep_config(read_sweep("whitepaper-2")), published=study("whitepaper-2"))
    assert from_data(RunConfig, to_data(config), strict=False).published == config.published


def test_what_is_measured_does_not_depend_on_published_figures() -> None:
    assert sweep_config(read_sweep("whitepaper-2")).published is None  # so that `--resume` finds the same sweep


GRID = "request_rate = [32, 33]\nmax_num_seqs = 64\nnum_prompts = 1\n"
TABLE = '[published]\nsource = "s"\nset_up = ""\ntable = "table04_vllm"\n'


def stored(folder: Path, text: str) -> str:
    (folder / "grid.toml").write_text(GRID + text)
    return str(folder / "grid.toml")


def test_cells_that_the_study_did_not_measure_have_no_figures(tmp_path: Path) -> None:
    assert figures(study(stored(tmp_path, TABLE))) == {(64, 32): (2272, None)}


@pytest.mark.parametrize("text", ["", TABLE])
def test_without_a_table_or_without_a_common_cell_there_is_no_study(tmp_path: Path, text: str) -> None:
    file = stored(tmp_path, text)
    stages = [dataclasses.replace(stage, max_num_seqs=7) for stage in sweep_config(read_sweep(file)).stages]
    assert published_study(file, read_sweep(file).engine, stages) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[published]\n", r"\[published\]: source is missing: give source, set_up, table"),
        (TABLE.replace("table04_vllm", "table04_vlm"), "no table 'table04_vlm': did you mean 'table04_vllm'"),
        (TABLE.replace("table04_vllm", "xyz"), "no table 'xyz': tables are table04_vllm, table05"),
        (TABLE + 'unit = "x"\n', "unknown key 'unit'"),
        (TABLE.replace('"s"', "3"), "source: 3 is not str"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = stored(tmp_path, text)
    with pytest.raises(UsageError, match=message) as error:
        published_study(file, read_sweep(file).engine, sweep_config(read_sweep(file)).stages)
    assert "\n" not in str(error.value)


def test_a_value_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="published"):
        read_sweep(stored(tmp_path, "published = 3\n"))
