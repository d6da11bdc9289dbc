"""Command lines and sweep files become a RunConfig, or an error of one line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.cli.main import joined_lists, split_engine_args
from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.run.loop.stage_plan import segments
from tests.cli.test_config_file import config_of


def test_arguments_after_two_dashes_belong_to_the_engine() -> None:
    own, engine = split_engine_args(["--engine", "vllm", "--", "--dtype", "half", "--", "x"])
    assert own == ["--engine", "vllm"]
    assert engine == ("--dtype", "half", "--", "x")


def test_goodput_accepts_several_objectives_as_vllm_does() -> None:
    words = joined_lists(["--goodput", "ttft:500", "ttfot:800", "--headless", "e2el:5"])
    assert words == ["--goodput", "ttft:500 ttfot:800", "--headless", "e2el:5"]


def sweep_from(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    return file


def test_a_sweep_is_every_combination_with_each_batch_size_set_once(tmp_path: Path) -> None:
    file = sweep_from(tmp_path, 'max_num_seqs = [64, 128]\nrequest_rate = [32, "inf"]\nduration = "30s"\nrepeats = 2')
    file.write_text(file.read_text().replace('"inf"', "64"))
    config = sweep_config(read_sweep(str(file)))
    cells = [(cell.max_num_seqs, cell.request_rate, cell.repeat) for cell in config.stages]
    assert cells == [
        (64, 32, 0), (64, 32, 1), (64, 64, 0), (64, 64, 1),
        (128, 32, 0), (128, 32, 1), (128, 64, 0), (128, 64, 1),
    ]  # fmt: skip
    assert {cell.duration for cell in config.stages} == {30.0}
    assert config.drain_at_stages
    assert config.label == "grid"
    assert [segment.max_num_seqs for segment in segments(config.stages)] == [64, 128]


def test_a_sweep_of_an_attached_engine_varies_the_clients_concurrency_instead(tmp_path: Path) -> None:
    text = 'max_num_seqs = [4, 8]\nnum_prompts = 10\n[engine]\nurl = "http://gpu7:8000"'
    config = sweep_config(read_sweep(str(sweep_from(tmp_path, text))))
    assert [(cell.max_num_seqs, cell.max_concurrency) for cell in config.stages] == [(None, 4), (None, 8)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_num_seq = [64]", "unknown key 'max_num_seq': did you mean 'max_num_seqs'"),
        ("request_rate = [0]\nduration = 5", "is not a request rate"),
        ("request_rate = [8]\nduration = -5", "is not a duration"),
        ("duration = 5", "nothing to sweep"),
        ("request_rate = ['inf']\nduration = 5", "needs a limit"),
        ("max_num_seqs = [0]\nrequest_rate = [8]\nduration = 5", "start at 1"),
        ("max_num_seqs = [", "is not valid TOML"),
        ("request_rate = [8]\nduration = 5\n[engine]\nmodle = 'x'", r"engine: unknown key 'modle'"),
    ],
)
def test_an_invalid_sweep_file_is_an_error_of_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        sweep_config(read_sweep(str(sweep_from(tmp_path, text))))
    assert "\n" not in str(caught.value)


def test_a_name_that_is_neither_a_file_nor_a_preset_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"no sweep file or preset named nowhere.toml"):
        read_sweep("nowhere.toml")


def test_an_infinite_rate_has_a_readable_label() -> None:
    assert StageConfig(request_rate=math.inf, max_concurrency=8).label == "all at once · conc. 8"


def test_the_state_of_the_prefix_cache_is_that_of_the_options_or_of_the_sweep(tmp_path: Path) -> None:
    assert config_of("--rate", "2").prefix_cache == "as-is"
    assert config_of("--rate", "2", "--prefix-cache", "cold").prefix_cache == "cold"
    hits = config_of("--rate", "2", "--cache-hit-rate", "0.5")
    assert (hits.prefix_cache, hits.workload.cache_hit_rate) == ("warm", 0.5)
    assert config_of("--rate", "2", "--cache-hit-rate", "0.5", "--prefix-cache", "cold").prefix_cache == "cold"
    sweep = sweep_from(tmp_path, 'request_rate = [1, 2]\ncache_hit_rate = 0.5\nprefix_cache = "cold"')
    assert sweep_config(read_sweep(str(sweep))).prefix_cache == "cold"
    with pytest.raises(UsageError, match="share no prefix"):
        config_of("--rate", "2", "--prefix-cache", "warm")
    with pytest.raises(UsageError, match="prefix-cache hot: use as-is, cold, warm"):
        sweep_config(read_sweep(str(sweep_from(tmp_path, 'request_rate = [1]\nprefix_cache = "hot"'))))


def test_a_ramp_beside_the_rates_of_another_is_refused() -> None:
    with pytest.raises(UsageError, match="--ramp sets rates: leave out --ramp-up-start-rps and --ramp-up-end-rps"):
        config_of("--ramp", "8:30s", "--ramp-up-start-rps", "1", "--ramp-up-end-rps", "2")
