"""`[grid]`, `[[cell]]`, `zip`, `exclude` and `order` of a sweep file, as the stages of its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.cli.configuration.prediction import predict_specs
from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.cell_workload import cell_workload
from servetop.core.errors import UsageError
from servetop.workload.stages.stage_draws import DrawSeeds


def config_of(tmp_path: Path, text: str) -> RunConfig:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    return sweep_config(read_sweep(str(file)))


def labels(config: RunConfig) -> list[str]:
    return [stage.label for stage in config.stages]


def lengths(config: RunConfig, stage: StageConfig) -> tuple[int, int]:
    own = cell_workload(config.workload, stage.settings)
    return own.input_len, own.output_len


LENGTHS = """
num_prompts = 10
request_rate = [2, 4]
random_output_len = 8
[grid]
random_input_len = [512, 2048]
"""


def test_a_list_of_any_option_of_the_requests_makes_cells(tmp_path: Path) -> None:
    config = config_of(tmp_path, LENGTHS)
    assert labels(config) == ["2 req/s · in 512", "4 req/s · in 512", "2 req/s · in 2048", "4 req/s · in 2048"]
    assert [lengths(config, stage) for stage in config.stages] == [(512, 8), (512, 8), (2048, 8), (2048, 8)]


def test_the_keys_of_lists_may_stand_under_grid(tmp_path: Path) -> None:
    lists = "max_num_seqs = [4, 8]\nrequest_rate = [2, 4]\nmax_concurrency = [16]\n"
    assert config_of(tmp_path, f"num_prompts = 9\n{lists}") == config_of(tmp_path, f"num_prompts = 9\n[grid]\n{lists}")


def test_ranges_stand_for_lists(tmp_path: Path) -> None:
    text = "num_prompts = 9\nrequest_rate = '2:8:x2'\n[grid]\ninput_len = { from = 8, to = 24, step = 8 }"
    config = config_of(tmp_path, text)
    assert [stage.request_rate for stage in config.stages] == [2.0, 4.0, 8.0] * 3
    assert [lengths(config, stage)[0] for stage in config.stages] == [8] * 3 + [16] * 3 + [24] * 3


def test_zip_exclude_and_single_cells(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        """
        num_prompts = 9
        [grid]
        input_len = [512, 2048]
        output_len = [128, 64]
        request_rate = [2, 4]
        zip = ["input_len", "output_len"]
        exclude = [{ input_len = 2048, request_rate = 4 }]
        [[cell]]
        input_len = 32
        output_len = 1
        request_rate = 16
        num_prompts = 100
        """,
    )
    assert [(stage.request_rate, *lengths(config, stage), stage.num_prompts) for stage in config.stages] == [
        (2.0, 512, 128, 9),
        (4.0, 512, 128, 9),
        (2.0, 2048, 64, 9),
        (16.0, 32, 1, 100),
    ]


def test_single_cells_take_what_they_do_not_set_from_the_top_of_the_file(tmp_path: Path) -> None:
    config = config_of(
        tmp_path, "request_rate = 8\nduration = '5s'\n[[cell]]\ninput_len = 8\n[[cell]]\nduration = '1m'\n"
    )
    assert [(stage.request_rate, stage.duration) for stage in config.stages] == [(8.0, 5.0), (8.0, 60.0)]
    assert [lengths(config, stage)[0] for stage in config.stages] == [8, 128]


def test_cells_of_one_batch_size_follow_each_other(tmp_path: Path) -> None:
    pairs = [(8, 1), (4, 2), (16, 3), (4, 4), (8, 5)]
    cells = "".join(f"[[cell]]\nmax_num_seqs = {batch}\nrequest_rate = {rate}\n" for batch, rate in pairs)
    config = config_of(tmp_path, f"num_prompts = 9\n{cells}")
    assert [stage.max_num_seqs for stage in config.stages] == [8, 8, 4, 4, 16]
    assert [stage.request_rate for stage in config.stages] == [1, 5, 2, 4, 3]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("fewest-restarts", [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]),
        ("ABBA", [(1, 0), (2, 0), (3, 0), (3, 1), (2, 1), (1, 1)]),
    ],
)
def test_the_order_of_the_repeats(tmp_path: Path, order: str, expected: list[tuple[int, int]]) -> None:
    config = config_of(tmp_path, f"num_prompts = 9\nrepeats = 2\norder = '{order}'\nrequest_rate = [1, 2, 3]")
    assert [(stage.request_rate, stage.repeat) for stage in config.stages] == expected


def test_a_shuffled_order_follows_from_the_seed(tmp_path: Path) -> None:
    text = "num_prompts = 9\norder = 'shuffled'\nrequest_rate = '1:20:1'\nseed = "
    first, again, other = (config_of(tmp_path, f"{text}{seed}").stages for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(stage.request_rate for stage in first) == list(range(1, 21))


def test_cells_of_equal_loads_have_equal_draws_unless_the_seed_varies(tmp_path: Path) -> None:
    def seeds(text: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        config = config_of(tmp_path, f"num_prompts = 9\nrequest_rate = 2\n[grid]\n{text}")
        draws = DrawSeeds.of(config).plan(enumerate(config.stages))
        assert len({each.stream for each in draws.values()}) == len({each.key for each in draws.values()}) == 2
        return [(each.arrivals, each.prompts) for each in draws.values()]

    assert len(set(seeds("input_len = [8, 16]"))) == 1
    assert len(set(seeds("seed = [1, 2]"))) == 2


def test_the_seed_is_a_setting_of_its_cell(tmp_path: Path) -> None:
    config = config_of(tmp_path, "num_prompts = 9\nrequest_rate = 2\n[grid]\nseed = [1, 2]")
    assert labels(config) == ["2 req/s · seed 1", "2 req/s · seed 2"]


def test_datasets_vary_with_what_follows_from_them(tmp_path: Path) -> None:
    config = config_of(tmp_path, "num_prompts = 9\n[grid]\ndataset_name = ['azure-code', 'random']\nrequest_rate = 2")
    first, second = (cell_workload(config.workload, stage.settings) for stage in config.stages)
    assert (first.dataset, first.arrivals, second.dataset, second.arrivals, second.trace_rate) == (
        "azure-code",
        "trace",
        "random",
        "",
        None,
    )


def test_hit_rates_begin_with_a_warm_cache(tmp_path: Path) -> None:
    config = config_of(tmp_path, "num_prompts = 9\nrequest_rate = 2\n[grid]\ncache_hit_rate = [0.0, 0.5]")
    assert config.prefix_cache == "warm"


def test_a_prediction_has_the_same_cells(tmp_path: Path) -> None:
    config = config_of(tmp_path, LENGTHS)
    (spec,) = predict_specs(str(tmp_path / "grid.toml"))
    assert (spec.workload, spec.stages) == (config.workload, config.stages)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[grid]\ninputlen = [1]", r"\[grid\]: unknown key 'inputlen': did you mean"),
        ("[grid]\nheader = ['A: b']", r"\[grid\]: header has one value in a sweep: write it at the top of the file"),
        ("[grid]\nrepeats = 3", r"\[grid\]: repeats has one value in a sweep: write it at the top"),
        ("request_rate = [1, 2]\n[grid]\nrate = [3]", "rate has two lists: leave out one of them"),
        ("[grid]\ninput_len = []", "an empty list leaves no cell"),
        ("[grid]\ninput_len = [8, 8]", "has 8 twice"),
        ("[grid]\ninput_len = [8, 'x']", "invalid --random-input-len x: use a whole number"),
        ("[grid]\ninput_len = [8, 0]", "invalid --random-input-len 0: use a whole number"),
        ("[grid]\nrequest_rate = [1, '2 per second']", "'2 per second' is not a request rate: use requests per second"),
        ("[grid]\nduration = ['10s', '2 days']\nrequest_rate = 1", "'2 days' is not a duration: use seconds, or"),
        ("[grid]\nmax_num_seqs = [0]", "max_num_seqs, max_concurrency and repeats start at 1"),
        ("[grid]\ninput_len = [8]\nzip = 'input_len'", r"zip = 'input_len': write the names of keys, as in \["),
        ("[grid]\ninput_len = [8]\nexclude = 3", "exclude = 3: write a table"),
        ("grid = 3", r"\[grid\] = 3: write a table"),
        ("request_rate = [1, 2]\n[[cell]]\ninput_len = 8", r"\[\[cell\]\] 1 sets no request_rate, which has a list"),
        ("[[cell]]\nrequest_rate = [1, 2]", r"\[\[cell\]\] 1: request_rate has several values: write them under"),
        ("[[cell]]\n", r"\[\[cell\]\] 1 is empty"),
        ("input_len = [8, 16]\nrequest_rate = 1", r"input_len = \[8, 16\]: write a list under \[grid\]"),
        ("order = 'random'\nrequest_rate = 1", "order = 'random': use fewest-restarts, shuffled, ABBA"),
        ("num_turns = 2\nrequest_rate = 1\n[[cell]]\nnum_turns = '3'\n[[cell]]\nnum_turns = ''", "use one sweep for"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=rf"grid(\.toml)?: .*{message}"):
        config_of(tmp_path, f"num_prompts = 9\n{text}")


FLAGS = """
num_prompts = 10
max_num_seqs = [4, 8]
[grid]
engine.args.kv-blocks = [64, 128]
model = ["llama-2-7b", "opt-1.3b"]
"""


def test_cells_of_one_engine_follow_each_other(tmp_path: Path) -> None:
    config = config_of(tmp_path, FLAGS)
    found = [
        (each.settings["engine.args.kv-blocks"], each.settings["model"], each.max_num_seqs) for each in config.stages
    ]
    assert found == [(k, m, b) for k in (64, 128) for m in ("llama-2-7b", "opt-1.3b") for b in (4, 8)]
    assert config.stages[0].label == "all at once · batch 4 · --kv-blocks 64 · llama-2-7b"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[grid]\nengine.args.max-num-seqs = [1, 2]", "write max_num_seqs instead"),
        ("[grid]\nengine.args.api-key = ['a', 'b']", "a secret would be recorded"),
        ("url = 'http://127.0.0.1:1'\n[grid]\nengine.args.dtype = ['a', 'b']", "keeps its model and its flags"),
        ("[grid]\nengine.name = ['vllm', 'sglang']", "unknown key|one value in a sweep"),
    ],
)
def test_flags_that_no_cell_can_have_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        config_of(tmp_path, f"num_prompts = 9\nrequest_rate = 4\n{text}")
