"""The command line of a simulator that a search starts is what the search predicts; other engines are not predicted."""

from __future__ import annotations

import pytest

from servetop.cli.framework.command_line import CommandLine, Invocation
from servetop.cli.options.engine_options import EngineOptions
from servetop.cli.options.run_options import RepeatableOptions
from servetop.cli.options.search_options import SearchedOptions, SearchOptions
from servetop.cli.search.search_command import search_config
from servetop.cli.search.simulated_engine import simulated_engine
from servetop.core.config import EngineConfig


def test_flags_of_the_simulator_are_those_of_its_prediction() -> None:
    flags = ("--gpu", "h100", "--kv-blocks", "900", "--time-scale", "0.5", "--engine-profile", "vllm-0.6")
    found = simulated_engine(EngineConfig(model="opt-13b", max_num_seqs=8, extra_args=flags))
    assert found is not None
    assert (found.model, found.gpu, found.engine_profile) == ("opt-13b", "h100", "vllm-0.6")
    assert found.settings == {"max_num_seqs": 8, "kv_blocks": 900, "time_scale": 0.5, "tensor_parallel": 1}


def test_an_emulated_engine_has_the_profile_of_its_dialect() -> None:
    found = simulated_engine(EngineConfig(extra_args=("--dialect", "tgi")))
    assert found is not None
    assert found.engine_profile == "tgi-2024"


@pytest.mark.parametrize(
    "engine",
    [
        EngineConfig(name="vllm"),
        EngineConfig(url="http://127.0.0.1:8000"),
        EngineConfig(command=("/opt/other",)),
        EngineConfig(extra_args=("--no-such-flag",)),
        EngineConfig(extra_args=("--kv-blocks", "many")),
        EngineConfig(model="no-such-model"),
    ],
)
def test_other_engines_and_wrong_flags_have_no_prediction(engine: EngineConfig) -> None:
    assert simulated_engine(engine) is None


def first_load(searched: SearchedOptions, *engine_args: str) -> tuple[float | None, float]:
    """The load that is expected and the one that the search begins with."""
    options = SearchOptions(search=searched, of_run=RepeatableOptions(engine=EngineOptions(max_num_seqs=8)))
    config = search_config(CommandLine(options=options, given={}, invocation=Invocation(engine_args=engine_args)))
    assert config.search is not None
    return config.search.prior, config.stages[-1].request_rate


def test_a_search_of_the_simulator_begins_at_half_of_the_predicted_load() -> None:
    prior, begins = first_load(SearchedOptions(slo=("ttft<500ms@90%",)))
    assert prior is not None
    assert begins == pytest.approx(prior / 2, rel=1e-3)


def test_a_given_load_replaces_the_prediction() -> None:
    assert first_load(SearchedOptions(slo=("ttft<500ms@90%",), prior=7.0)) == (7.0, 3.5)
    assert first_load(SearchedOptions(slo=("ttft<500ms@90%",), no_prior=True)) == (None, 0.1)
    assert first_load(SearchedOptions(slo=("ttft<500ms@90%",), prior=7.0, low=5.0)) == (7.0, 5.0)


def test_a_search_without_a_prediction_begins_at_the_least_load() -> None:
    assert first_load(SearchedOptions(slo=("ttft<500ms@90%",), low=2.0), "--no-such-flag") == (None, 2.0)
