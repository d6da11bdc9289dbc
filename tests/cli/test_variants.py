"""The two configurations of `servetop run-pairs`: common options, and those of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.cli.framework.command_line import CommandLine, Invocation
from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import Given
from servetop.cli.options.pairs_options import RunPairsOptions
from servetop.cli.pairs.variants import arm_configs, split_variant
from servetop.core.errors import UsageError
from servetop.run.pairs.series_folder import ArmConfigs


def configs(*engine_args: str, **given: Given) -> ArmConfigs:
    line = CommandLine(
        options=read_options(RunPairsOptions, given), given=given, invocation=Invocation(engine_args=engine_args)
    )
    return arm_configs(line)


def test_known_options_are_servetops_and_all_others_the_engines() -> None:
    given, engine_args = split_variant("--max-num-seqs 64 --max-num-batched-tokens 2048 --eager -tp 2", option="--a")
    assert given == {"max_num_seqs": "64"}
    assert engine_args == ("--max-num-batched-tokens", "2048", "--eager", "-tp", "2")


def test_options_after_a_double_hyphen_are_the_engines() -> None:
    assert split_variant("--port 80 -- --seed 3", option="--a") == ({"port": "80"}, ("--seed", "3"))
    assert split_variant("", option="--a") == ({}, ())


def test_common_options_apply_to_both() -> None:
    both = configs("--eager", request_rate="8", engine="vllm", a="--max-num-seqs 64", b="--block-size 32")
    assert [each.max_num_seqs for each in (both.a.engine, both.b.engine)] == [64, None]
    assert [each.extra_args for each in (both.a.engine, both.b.engine)] == [
        ("--eager",),
        ("--eager", "--block-size", "32"),
    ]
    assert both.a.stages == both.b.stages
    assert both.restarts
    assert both.of("b", seed=7).seed == 7


def test_each_variant_may_be_a_file(tmp_path: Path) -> None:
    for name, batch in (("a", 8), ("b", 16)):
        (tmp_path / f"{name}.toml").write_text(f"request_rate = 4\nmax_num_seqs = {batch}\n")
    both = configs(files=[str(tmp_path / "a.toml"), str(tmp_path / "b.toml")], duration="5s")
    assert (both.a.engine.max_num_seqs, both.b.engine.max_num_seqs) == (8, 16)
    assert both.b.stages[0].duration == 5.0


def test_servers_at_urls_are_not_restarted() -> None:
    both = configs(request_rate="8", a="--url http://127.0.0.1:1", b="--url http://127.0.0.1:2")
    assert not both.restarts


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "nothing to compare"),
        ({"files": ["a.toml"]}, "two files"),
        ({"a": "--seed 3"}, "--a: --seed cannot differ"),
        ({"b": "--record x"}, "--b: --record cannot differ"),
        ({"a": "'"}, '--a "\'": no closing quotation'),
        ({"a": "--input-len 8"}, "but input_len is 8 and"),
        ({"b": "--request-rate 9"}, "their stages differ"),
        ({"a": "--config x.toml", "files": ["y.toml", "z.toml"]}, "exclude each other"),
    ],
)
def test_what_cannot_be_compared_is_refused(given: dict[str, Given], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        configs(**given)
