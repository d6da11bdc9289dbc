"""Telemetry of AMD GPUs through amdsmi, a Python package of ROCm (also the extra `amd`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from servetop.core.events import GpuSample
from servetop.engines.gpu.gpu_processes import Owns, any_process, owned_memory
from servetop.engines.gpu.gpu_reader import GpuReader

MHZ = 1e6
MIB = 1 << 20
MICROJOULE = 1e-6
MAX_CELSIUS = 1000
"""A higher value is in thousandths of a degree, as in some versions of amdsmi."""


class AmdReader(GpuReader):
    """Reads devices through a module with amdsmi's functions; values that are `N/A` are None."""

    def _device(self, device: Any, index: int, at: float) -> GpuSample:
        smi = self._library
        used, total = self._numbers(smi.amdsmi_get_gpu_vram_usage, device, keys=("vram_used", "vram_total"))
        (busy,) = self._numbers(smi.amdsmi_get_gpu_activity, device, keys=("gfx_activity",))
        asic = self._call(smi.amdsmi_get_gpu_asic_info, device)
        name = asic.get("market_name") if isinstance(asic, dict) else None
        return GpuSample(
            at=at,
            index=index,
            name=str(name) if name not in (None, "", "N/A") else "AMD GPU",
            utilisation=None if busy is None else busy / 100,
            memory_used=None if used is None else int(used * MIB),
            memory_total=None if total is None else int(total * MIB),
            power=self._power(device),
            temperature=self._temperature(device),
            sm_clock=self._clock(device, "GFX"),
            memory_clock=self._clock(device, "MEM"),
            engine_memory=owned_memory(self._processes(device), self._owns),
            energy=self._energy(device),
        )

    def _power(self, device: Any) -> float | None:
        """Current power in watts; some cards report only a short-term mean."""
        keys = ("current_socket_power", "average_socket_power")
        current, mean = self._numbers(self._library.amdsmi_get_power_info, device, keys=keys)
        return current or mean

    def _temperature(self, device: Any) -> float | None:
        """Temperature of the hotspot, which every card measures."""
        kinds = (self._library.AmdSmiTemperatureType.HOTSPOT, self._library.AmdSmiTemperatureMetric.CURRENT)
        value = _number(self._call(self._library.amdsmi_get_temp_metric, device, *kinds))
        return value / 1000 if value is not None and value > MAX_CELSIUS else value

    def _clock(self, device: Any, kind: str) -> float | None:
        function, clock = self._library.amdsmi_get_clock_info, getattr(self._library.AmdSmiClkType, kind)
        (value,) = self._numbers(function, device, clock, keys=("clk",))
        return None if value is None else value * MHZ

    def _energy(self, device: Any) -> float | None:
        keys = ("energy_accumulator", "power", "counter_resolution")  # `power` is the first one's older name
        count, older, resolution = self._numbers(self._library.amdsmi_get_energy_count, device, keys=keys)
        total = older if count is None else count
        return None if total is None or resolution is None else total * resolution * MICROJOULE

    def _processes(self, device: Any) -> list[tuple[int, int | None]]:
        listed = self._call(self._library.amdsmi_get_gpu_process_list, device)
        rows = [row for row in listed if isinstance(row, dict) and "pid" in row] if isinstance(listed, list) else []
        sizes = [_number((row.get("memory_usage") or {}).get("vram_mem", row.get("mem"))) for row in rows]
        return [(row["pid"], None if size is None else int(size)) for row, size in zip(rows, sizes, strict=True)]

    def _numbers(self, function: Callable[..., Any], *arguments: Any, keys: Sequence[str]) -> list[float | None]:
        values = self._call(function, *arguments)
        return [_number(values.get(key)) if isinstance(values, dict) else None for key in keys]

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._library.AmdSmiException as error:
            self._error = str(error)
            return None


def open_amd(owns: Owns = any_process) -> AmdReader | None:
    """Open this machine's AMD devices; None if amdsmi is missing, fails to load, or finds none."""
    try:
        import amdsmi
    except (ImportError, OSError, KeyError):  # without ROCm's library the import may raise any of these
        return None
    try:
        amdsmi.amdsmi_init()
        devices = amdsmi.amdsmi_get_processor_handles()
    except amdsmi.AmdSmiException:
        return None
    return AmdReader(amdsmi, devices, owns) if devices else None


def _number(value: object) -> float | None:
    """Return the number; None for `N/A`, a missing value and anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
