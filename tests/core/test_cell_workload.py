"""The workload of a cell is that of the run with its settings."""

from __future__ import annotations

import dataclasses
import math

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.config_values.cell_workload import cell_workload, cell_workloads
from servetop.core.errors import UsageError

WORKLOAD = WorkloadConfig(input_len=64, cache_hit_rate=0.5, extra_body={"top_p": 0.9})


def test_settings_replace_fields_of_the_workload() -> None:
    own = cell_workload(WORKLOAD, {"input_len": 512, "cache_hit_rate": None, "burstiness": "inf", "seed": 3})
    assert own == dataclasses.replace(WORKLOAD, input_len=512, cache_hit_rate=None, burstiness=math.inf)


def test_without_settings_of_a_workload_it_is_that_of_the_run() -> None:
    assert cell_workload(WORKLOAD, {}) is WORKLOAD
    assert cell_workload(WORKLOAD, {"seed": 3}) is WORKLOAD


def test_the_different_workloads_of_a_plan_in_its_order() -> None:
    stages = [StageConfig(settings={"input_len": length}) for length in (512, 64, 512)]
    assert [each.input_len for each in cell_workloads(WORKLOAD, stages)] == [512, 64]
    assert cell_workloads(WORKLOAD, []) == [WORKLOAD]


def test_a_value_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(UsageError, match=r"settings of a cell\.input_len: 'x' is not int"):
        cell_workload(WORKLOAD, {"input_len": "x"})
