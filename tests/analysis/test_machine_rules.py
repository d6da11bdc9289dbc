"""KV caches, clocks and other processes on the GPUs are compared beyond their limits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from servetop.analysis.confounding.conditions import GpuReadings, KvSize
from servetop.analysis.confounding.machine_rules import (
    gpu_clocks_confounder,
    kv_size_confounder,
    other_load_confounder,
)
from servetop.core.units import GIB
from tests.analysis.measured_conditions import conditions, gpu

NOMINAL = 1.41e9


def _clocks_text(a: dict[int, GpuReadings], b: dict[int, GpuReadings]) -> str:
    found = gpu_clocks_confounder(conditions(gpus=a), conditions(gpus=b))
    return "" if found is None else found.text


@pytest.mark.parametrize(("blocks", "named"), [(1008.0, False), (1015.0, True), (700.0, True)])
def test_kv_caches_that_differ_by_more_than_a_percent_are_named(blocks: float, named: bool) -> None:
    other = conditions(kv=KvSize(blocks=blocks, block_size=16))
    assert (kv_size_confounder(conditions(), other) is not None) == named


def test_blocks_of_another_size_hold_the_same_tokens() -> None:
    assert kv_size_confounder(conditions(), conditions(kv=KvSize(blocks=500.0, block_size=32))) is None
    found = kv_size_confounder(conditions(), conditions(kv=KvSize(blocks=500.0, block_size=None)))
    assert found is not None
    assert "500 blocks in B and 1,000 in A (-50.0%)" in found.text
    assert kv_size_confounder(conditions(), conditions(kv=KvSize(blocks=None, block_size=16))) is None


def test_a_lower_clock_at_the_same_utilisation_is_named_and_a_step_of_15_mhz_is_not() -> None:
    assert _clocks_text({0: gpu(NOMINAL)}, {0: gpu(NOMINAL - 15e6)}) == ""
    text = _clocks_text({0: gpu(NOMINAL)}, {0: gpu(0.9 * NOMINAL)})
    assert text == "GPU 0 ran at 1,269 MHz in B and 1,410 MHz in A at the same utilisation (-10.0%)"


def test_clocks_are_compared_within_levels_of_utilisation_only() -> None:
    """More load lowers the clock of a GPU whose power is limited, in every run."""
    low, high = gpu(NOMINAL, use=0.3), gpu(0.9 * NOMINAL, use=0.98)
    assert _clocks_text({0: low}, {0: high}) == ""


def test_a_lower_clock_of_a_device_that_draws_more_power_is_a_consequence_of_its_load() -> None:
    """As on an H200 in two stages: 1,980 MHz at 390 W, and 1,876 MHz at its limit of 700 W."""
    calm, loaded, limited = (
        gpu(NOMINAL, power=390.0),
        gpu(0.95 * NOMINAL, power=700.0),
        gpu(0.95 * NOMINAL, power=350.0),
    )
    assert _clocks_text({0: calm}, {0: loaded}) == _clocks_text({0: loaded}, {0: calm}) == ""
    assert _clocks_text({0: calm}, {0: limited}) != ""


def test_a_throttle_for_half_of_the_run_is_named() -> None:
    half = np.where(np.arange(100) < 50, NOMINAL, 0.8 * NOMINAL)
    assert "1,269 MHz in B" in _clocks_text({0: gpu(NOMINAL)}, {0: gpu(half)})


def test_devices_are_compared_from_the_slowest_on_whatever_their_numbers() -> None:
    slow, fast = gpu(0.9 * NOMINAL), gpu(NOMINAL)
    assert _clocks_text({0: slow, 1: fast}, {2: fast, 3: slow}) == ""
    assert "GPU 3 ran at" in _clocks_text({0: fast, 1: fast}, {2: fast, 3: slow})


def test_a_throttled_device_is_named_if_its_clocks_are_not_reported() -> None:
    unknown = gpu(float("nan"))
    throttled = gpu(float("nan"), throttled=[True] * 100, reasons=["heat"])
    assert _clocks_text({0: unknown}, {0: throttled}) == (
        "GPU 0 was throttled (heat) for 100% of the time under load in B and 0% in A"
    )
    assert _clocks_text({0: throttled}, {0: throttled}) == ""


def test_idle_readings_are_ignored() -> None:
    idle = gpu(0.2e9, use=0.0)
    assert _clocks_text({0: gpu(NOMINAL)}, {0: idle}) == ""


def test_memory_of_other_processes_is_named_above_a_gibibyte() -> None:
    free, used = (dataclasses.replace(gpu(NOMINAL), foreign_memory=size * GIB) for size in (0.2, 3.0))
    found = other_load_confounder(conditions(gpus={0: free}), conditions(gpus={0: used}))
    assert found is not None
    assert "3.0 GiB of the GPUs in B and 0.2 GiB in A" in found.text
    assert other_load_confounder(conditions(gpus={0: free}), conditions(gpus={0: gpu(NOMINAL)})) is None
