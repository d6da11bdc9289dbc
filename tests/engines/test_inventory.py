"""The engines installed on a machine, listed without an error on any machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from servetop.engines.inventory import gpu_inventory, shortened, startable_engines
from tests.engines.stand_in_nvml import NvmlError, OneDevice, OneLostCard


class OneCard(OneDevice):
    """NVML's functions over a card that this process and one that is gone hold memory of."""

    def nvmlDeviceGetName(self, device: int) -> bytes:
        return b"NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        return SimpleNamespace(used=12 << 30, total=140 << 30)

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[Any]:
        return [
            SimpleNamespace(pid=os.getpid(), usedGpuMemory=2 << 30),
            SimpleNamespace(pid=1 << 30, usedGpuMemory=9 << 30),
            SimpleNamespace(pid=(1 << 30) + 1, usedGpuMemory=None),
        ]

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.82.07"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 13_000


def test_a_gpu_is_listed_with_its_driver_and_processes_largest_first() -> None:
    found = gpu_inventory(OneCard())
    assert (found.driver, found.trouble) == ("NVIDIA 580.82.07, CUDA up to 13.0", "")
    (card,) = found.devices
    assert (card.name, card.used, card.total) == ("NVIDIA H200", 12 << 30, 140 << 30)
    assert card.holders[0] == f"process {1 << 30} with 9.0 GiB (a process that cannot be inspected)"
    assert card.holders[1].startswith(f"process {os.getpid()} with 2.0 GiB (")


def test_a_lost_card_hides_no_other() -> None:
    cards = OneLostCard()
    cards.gone = True
    found = gpu_inventory(cards)
    assert [(each.index, each.name) for each in found.devices] == [(1, "Tesla T4")]
    assert found.unreadable == {0: "GPU is lost", 2: "GPU is lost"}
    assert (found.driver[:6], found.trouble) == ("NVIDIA", "")


class SharedMemory(OneCard):
    """A card that uses the memory of the machine and reports none of its own."""

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        raise NvmlError("Not Supported")


def test_a_card_without_memory_of_its_own_is_listed() -> None:
    found = gpu_inventory(SharedMemory())
    assert [(each.name, each.used, each.total) for each in found.devices] == [("NVIDIA H200", None, None)]
    assert found.unreadable == {}


class NoDriver(OneCard):
    """NVML's library without a driver that answers."""

    def nvmlInit(self) -> None:
        raise NvmlError("Driver Not Loaded")


@pytest.mark.parametrize("there", [True, False])
def test_a_driver_that_is_there_and_does_not_answer_is_a_trouble(there: bool, tmp_path: Path) -> None:
    sign = tmp_path / "version"
    if there:
        sign.touch()
    found = gpu_inventory(NoDriver(), driver_files=[str(sign)])
    assert found.devices == ()
    assert found.trouble == ("NVIDIA's driver is installed but cannot be used: Driver Not Loaded" if there else "")


def test_every_engine_can_be_started_or_has_a_reason() -> None:
    engines = {each.name: each for each in startable_engines()}
    assert engines["sim"].command.startswith(f"{Path(sys.executable).name} -P -m servetop.cli.serve_process ")
    assert "attach with --url" in engines["openai"].trouble
    assert all(bool(each.command) != bool(each.trouble) for each in engines.values())


def test_long_words_are_cut_with_a_sign_of_it() -> None:
    assert shortened("short") == "short"
    assert shortened("x" * 80, 10) == "xxxxxxxxx…"
