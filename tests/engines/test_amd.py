"""AMD's cards are read through amdsmi 6, in servetop's units."""

from __future__ import annotations

import sys
from enum import IntEnum
from types import ModuleType
from typing import Any

import pytest

from servetop.core.events import GpuSample
from servetop.engines.gpu.amd import AmdReader, open_amd


class AmdSmiError(Exception):
    """As amdsmi.AmdSmiException."""


class TemperatureType(IntEnum):
    EDGE, HOTSPOT = 0, 1


class TemperatureMetric(IntEnum):
    CURRENT = 0


class ClockType(IntEnum):
    GFX, MEM = 0, 4


class Mi300:
    """amdsmi's functions for cards of which number 1 reports few values, as some cards and virtual machines do."""

    AmdSmiException = AmdSmiError
    AmdSmiTemperatureType, AmdSmiTemperatureMetric, AmdSmiClkType = TemperatureType, TemperatureMetric, ClockType

    def amdsmi_get_gpu_asic_info(self, device: int) -> dict[str, Any]:
        return {"market_name": "AMD Instinct MI300X" if device == 0 else "N/A"}

    def amdsmi_get_gpu_vram_usage(self, device: int) -> dict[str, int]:
        return {"vram_total": 196_592, "vram_used": 20_480}

    def amdsmi_get_gpu_activity(self, device: int) -> dict[str, Any]:
        return {"gfx_activity": 73 if device == 0 else "N/A", "umc_activity": 12, "mm_activity": "N/A"}

    def amdsmi_get_power_info(self, device: int) -> dict[str, Any]:
        return {"current_socket_power": 512 if device == 0 else "N/A", "average_socket_power": 130}

    def amdsmi_get_temp_metric(self, device: int, sensor: TemperatureType, metric: TemperatureMetric) -> int:
        assert (sensor, metric) == (TemperatureType.HOTSPOT, TemperatureMetric.CURRENT)
        return 58 if device == 0 else 58_000

    def amdsmi_get_clock_info(self, device: int, kind: ClockType) -> dict[str, int]:
        return {"clk": {ClockType.GFX: 2100, ClockType.MEM: 1300}[kind]}

    def amdsmi_get_energy_count(self, device: int) -> dict[str, Any]:
        if device == 1:
            raise AmdSmiError("AMDSMI_STATUS_NOT_SUPPORTED")
        return {"energy_accumulator": 1_000_000, "counter_resolution": 15.3, "timestamp": 1}

    def amdsmi_get_gpu_process_list(self, device: int) -> list[dict[str, Any]]:
        if device == 1:
            raise AmdSmiError("AMDSMI_STATUS_NO_PERM")
        return [
            {"pid": 100, "mem": 1, "memory_usage": {"vram_mem": 10 << 30}},
            {"pid": 999, "mem": 7 << 30, "memory_usage": {"vram_mem": 7 << 30}},
        ]


def test_every_card_is_read_in_our_units() -> None:
    first, second = AmdReader(Mi300(), [0, 1], owns=lambda pid: pid == 100)(12.5)
    assert first == GpuSample(
        at=12.5, index=0, name="AMD Instinct MI300X", utilisation=0.73, temperature=58.0,
        memory_used=20 << 30, memory_total=196_592 << 20, engine_memory=10 << 30,
        power=512.0, energy=1_000_000 * 15.3 * 1e-6, sm_clock=2.1e9, memory_clock=1.3e9,
    )  # fmt: skip
    assert (second.name, second.utilisation, second.power) == ("AMD GPU", None, 130.0)
    assert (second.temperature, second.energy, second.engine_memory) == (58.0, None, None)


def test_an_older_name_of_the_counter_is_known() -> None:
    class Older(Mi300):
        def amdsmi_get_energy_count(self, device: int) -> dict[str, Any]:
            return {"power": 2_000_000, "counter_resolution": 15.3, "timestamp": 1}

    (sample,) = AmdReader(Older(), [0])(0.0)
    assert sample.energy == pytest.approx(30.6)


class Installed(ModuleType):
    """The module that `import amdsmi` returns, with a number of cards; None: the driver is not loaded."""

    AmdSmiException = AmdSmiError

    def __init__(self, cards: int | None) -> None:
        super().__init__("amdsmi")
        self.cards = cards

    def amdsmi_init(self) -> None:
        if self.cards is None:
            raise AmdSmiError("AMDSMI_STATUS_DRIVER_NOT_LOADED")

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(self.cards or 0))


@pytest.mark.parametrize(("cards", "found"), [(None, False), (0, False), (2, True)])
def test_a_reader_is_there_when_there_are_cards(
    cards: int | None, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", Installed(cards))
    assert (open_amd() is not None) == found


def test_without_the_package_there_is_no_reader_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert open_amd() is None
