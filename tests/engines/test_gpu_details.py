"""What identifies GPUs, from NVML and amdsmi."""

from __future__ import annotations

from typing import Any

from servetop.engines.gpu.gpu_details import gpu_details
from tests.engines.stand_in_nvml import NvmlError, TwoCards
from tests.engines.test_amd import Mi300


class TwoLimitedCards(TwoCards):
    """Two cards with a power limit and clocks, of which the second one cannot tell most of it."""

    NVML_CLOCK_GRAPHICS = 3

    def nvmlInit(self) -> None:
        return None

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.82.07"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 12_040

    def nvmlDeviceGetPowerManagementLimit(self, device: int) -> int:
        return 700_000

    def nvmlDeviceGetMaxClockInfo(self, device: int, kind: int) -> int:
        if device == 1:
            raise NvmlError("Not Supported")
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetApplicationsClock(self, device: int, kind: int) -> int:
        if device == 1:
            raise NvmlError("Not Supported")
        return {3: 1755, 2: 3201}[kind]

    def nvmlDeviceGetPersistenceMode(self, device: int) -> int:
        return 1

    def nvmlDeviceGetEccMode(self, device: int) -> list[int]:
        return [0, 1]

    def nvmlDeviceGetUUID(self, device: int) -> str:
        raise AssertionError("ids are not read")


def test_cards_of_nvidia_have_limits_and_clocks_where_they_report_them() -> None:
    found = gpu_details(nvml=TwoLimitedCards())
    assert (found["driver"], found["cuda"]) == ("580.82.07", "12.4")
    first, second = found["devices"]
    assert first == {
        "name": "NVIDIA H200", "memory": 140 << 30, "power_limit": 700.0, "persistence": True, "ecc": False,
        "clocks": {"sm_max": 1.98e9, "memory_max": 3.201e9, "sm_application": 1.755e9, "memory_application": 3.201e9},
    }  # fmt: skip
    assert second == {
        "name": "Tesla T4", "memory": 140 << 30, "power_limit": 700.0, "persistence": True, "ecc": False,
    }  # fmt: skip


class LimitedMi300(Mi300):
    """AMD's cards, also with a power limit."""

    def amdsmi_init(self) -> None:
        return None

    def amdsmi_get_processor_handles(self) -> list[int]:
        return [0]

    def amdsmi_get_gpu_driver_info(self, device: int) -> dict[str, Any]:
        return {"driver_version": "6.10.5"}

    def amdsmi_get_power_cap_info(self, device: int) -> dict[str, Any]:
        return {"power_cap": 750_000_000}

    def amdsmi_get_clock_info(self, device: int, kind: int) -> dict[str, int]:
        return {"max_clk": {0: 2100, 4: 1300}[kind]}


class NoCards(LimitedMi300):
    """ROCm without a card."""

    def amdsmi_get_processor_handles(self) -> list[int]:
        return []


def test_cards_of_amd_are_read_where_there_are_none_of_nvidia() -> None:
    class NoDriver:
        NVMLError = NvmlError

        def nvmlInit(self) -> None:
            raise NvmlError("Driver Not Loaded")

    found = gpu_details(nvml=NoDriver(), amdsmi=LimitedMi300())
    card = {"name": "AMD Instinct MI300X", "memory": 196_592 << 20, "power_limit": 750.0}
    assert found == {"driver": "6.10.5", "devices": [{**card, "clocks": {"sm_max": 2.1e9, "memory_max": 1.3e9}}]}
    assert gpu_details(nvml=NoDriver(), amdsmi=NoCards()) == {}
