"""A configuration survives JSON, and an error names the key and its place."""

import json
import math
from typing import Any

import pytest

from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig, from_data, to_data
from servetop.core.errors import UsageError

CONFIG = RunConfig(
    engine=EngineConfig(name="vllm", extra_args=("--dtype", "bfloat16")),
    workload=WorkloadConfig(burstiness=math.inf, extra_body={"top_p": 0.9}),
    stages=(StageConfig(request_rate=8.0, duration=30.0), StageConfig(max_concurrency=4, num_prompts=10)),
    goodput={"ttft": 0.5},
)


def test_a_config_survives_json() -> None:
    assert from_data(RunConfig, json.loads(json.dumps(to_data(CONFIG)))) == CONFIG


@pytest.mark.parametrize(
    "fields",
    [
        {"label": "a\udcff"},
        {"metadata": {"a\udcff": "b"}},
        {"engine": EngineConfig(extra_args=("a\udcff",))},
        {"workload": WorkloadConfig(extra_body={"stop": ["a\udcff"]})},
    ],
)
def test_a_text_that_cannot_be_sent_or_recorded_is_refused_in_one_line(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"'a\\udcff' is not valid UTF-8: write it in UTF-8"):
        RunConfig(**fields)


def test_an_unknown_key_names_the_nearest_one_and_its_place() -> None:
    with pytest.raises(UsageError, match=r"sweep.toml.engine: unknown key 'modle': did you mean 'model'\?"):
        from_data(RunConfig, {"engine": {"modle": "x"}}, where="sweep.toml")


def test_a_header_of_a_newer_version_may_hold_keys_that_are_not_known() -> None:
    assert from_data(StageConfig, {"request_rate": 4.0, "colour": "red"}, strict=False).request_rate == 4.0


def test_a_wrong_type_is_told_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"config.stages.num_prompts: 'many' is not int"):
        from_data(RunConfig, {"stages": [{"num_prompts": "many"}]})
