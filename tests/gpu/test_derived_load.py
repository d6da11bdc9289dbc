"""The GPU check offers each card twice its capacity; tested with profiles of several cards."""

from __future__ import annotations

import pytest

from servetop.core.events import GpuSample
from tests.gpu.derived_load import A100_BLOCKS, derived_load, profile_of

GB = 10**9
BLOCKS = A100_BLOCKS - 1
CARDS = {
    ("NVIDIA A100-SXM4-40GB", 42): "a100-40",
    ("NVIDIA A100-PCIE-40GB", 42): "a100-40",
    ("NVIDIA A100 80GB PCIe", 85): "a100-80",
    ("NVIDIA H100 80GB HBM3", 85): "h100",
    ("NVIDIA H200", 150): "h200",
    ("NVIDIA L4", 24): "l4",
    ("NVIDIA A10G", 24): "a10g",
    ("NVIDIA GeForce RTX 4090", 25): "rtx4090",
    ("Tesla V100-SXM2-16GB", 17): "v100-16",
    ("Tesla V100-SXM2-32GB", 34): "v100-32",
}


def device(name: str, gigabytes: int) -> GpuSample:
    return GpuSample(at=0.0, index=0, name=name, memory_total=gigabytes * GB)


@pytest.mark.parametrize(("card", "profile"), CARDS.items(), ids=[name for name, _ in CARDS])
def test_a_card_is_known_by_its_name_and_memory(card: tuple[str, int], profile: str) -> None:
    assert profile_of(device(*card)) == profile


def test_a_card_without_a_profile_gives_no_load() -> None:
    assert derived_load([device("Radeon Pro", 32)], kv_blocks=BLOCKS) is None
    assert derived_load([], kv_blocks=BLOCKS) is None


@pytest.mark.parametrize("card", [("NVIDIA A100-SXM4-40GB", 42), ("NVIDIA H200", 150)])
def test_the_load_is_twice_the_predicted_capacity_and_preempts(card: tuple[str, int]) -> None:
    load = derived_load([device(*card)], kv_blocks=BLOCKS)
    assert load is not None
    assert load.request_rate >= 2 * load.capacity > 0
    assert load.preemptions > 0


def test_what_an_a100_is_asked_for_would_not_preempt_an_h200() -> None:
    loads = [
        derived_load([device(*card)], kv_blocks=BLOCKS) for card in (("NVIDIA A100-40GB", 42), ("NVIDIA H200", 150))
    ]
    a100, h200 = loads
    assert a100 is not None
    assert h200 is not None
    assert a100.request_rate < h200.capacity
