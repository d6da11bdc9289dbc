"""The engine that a cell of a sweep needs."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.core.config import EngineConfig
from servetop.core.config_values.cell_engine import cell_engine, engine_settings

ENGINE = EngineConfig(name="vllm", model="m", extra_args=("--dtype", "half", "--max_num_batched_tokens=512", "--eager"))


def test_settings_of_the_requests_are_none_of_the_engine() -> None:
    assert engine_settings({"input_len": 512, "seed": 1}) == {}
    assert cell_engine(ENGINE, {"input_len": 512}) == ENGINE


@pytest.mark.parametrize(
    ("flags", "args"),
    [
        ({"max-num-batched-tokens": 2048}, ("--dtype", "half", "--eager", "--max-num-batched-tokens", "2048")),
        ({"dtype": "auto"}, ("--max_num_batched_tokens=512", "--eager", "--dtype", "auto")),
        ({"eager": False}, ("--dtype", "half", "--max_num_batched_tokens=512")),
        ({"eager": True}, ("--dtype", "half", "--max_num_batched_tokens=512", "--eager")),
    ],
)
def test_a_flag_of_the_cell_replaces_that_of_the_run(flags: dict[str, Any], args: tuple[str, ...]) -> None:
    settings = {f"engine.args.{name}": value for name, value in flags.items()}
    assert cell_engine(ENGINE, settings | {"model": "other"}) == EngineConfig(
        name="vllm", model="other", extra_args=args
    )
