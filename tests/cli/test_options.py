"""Options are declared once: defaults, help, completion and file keys derive from the declaration."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from servetop.cli.configuration.configure import engine_config
from servetop.cli.configuration.workload_settings import workload_config
from servetop.cli.framework.command_line import help_of, unit_of
from servetop.cli.option_reference import option_reference
from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import GivenValues, Option, declared
from servetop.cli.options.file_keys import file_options
from servetop.cli.options.run_options import RunOptions
from servetop.core.config import EngineConfig, RunConfig, WorkloadConfig
from servetop.core.errors import UsageError


def test_defaults_are_those_of_the_configuration() -> None:
    options = RunOptions()
    assert engine_config(options, ()) == EngineConfig()
    assert workload_config(options) == dataclasses.replace(WorkloadConfig(), endpoint="")
    config = RunConfig()
    assert options.results.max_failures == config.max_failures
    assert (options.load.seed, options.load.workers, options.load.cooldown) == (
        config.seed, config.workers, config.cooldown,
    )  # fmt: skip


def test_no_two_options_share_a_name() -> None:
    flags = [flag for each in declared(RunOptions) if isinstance(each.form, Option) for flag in each.form.flags]
    names = [each.name for each in declared(RunOptions)]
    assert len(set(flags)) == len(flags)
    assert len(set(names)) == len(names)


def test_help_is_a_sentence_with_the_default_and_the_range() -> None:
    options = {each.name: each for each in declared(RunOptions)}
    for each in options.values():
        assert isinstance(each.form, Option)
        assert each.form.help.endswith("."), each.spelling
    assert help_of(options["port"]) == "Port of a started engine. (default: a free one; from 1 to 65535)"
    assert help_of(options["timeout"]) == "Time limit of a request. (default: 600; at least 0.1)"
    assert (unit_of(options["launcher"]), unit_of(options["insecure"])) == ("docker|podman", None)


def test_values_have_the_type_of_their_field() -> None:
    given: GivenValues = {
        "url": ["http://a:1", "http://b:1"],
        "duration": "1.5m",
        "port": "80",
        "goodput": ["ttft:500"],
        "web": True,
    }
    options = read_options(RunOptions, given)
    assert options.engine.url == ("http://a:1", "http://b:1")
    assert (options.load.duration, options.engine.port, options.web.web) == (90.0, 80, True)
    assert options.results.goodput == {"ttft": 0.5}


def test_an_invalid_value_is_reported_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"^run.toml: invalid --seed x: use a whole number$"):
        read_options(RunOptions, {"seed": "x"}, where="run.toml")
    with pytest.raises(UsageError, match=r"^--duration: 'soon' is not a duration"):
        read_options(RunOptions, {"duration": "soon"})


def test_several_values_of_a_swept_option_lead_to_the_sweep() -> None:
    with pytest.raises(UsageError, match=r"^invalid --max-num-seqs 64,128: .* for several use servetop sweep"):
        read_options(RunOptions, {"max_num_seqs": "64,128"})
    with pytest.raises(UsageError, match=r"^invalid --seed 1,2: use a whole number$"):
        read_options(RunOptions, {"seed": "1,2"})


def test_a_file_may_set_every_option_but_those_of_the_command_line_itself() -> None:
    assert {each.name for each in declared(RunOptions)} - set(file_options()) == {"config", "version"}


def test_the_option_reference_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "options.md"
    assert page.read_text(encoding="utf-8") == option_reference(), "run make options"


def test_an_empty_choice_stands_for_the_default() -> None:
    assert read_options(RunOptions, {"launcher": "", "transport": ""}).engine.launcher == ""
