"""Peaks of GPUs from NVIDIA's data sheets, and what share of them an engine's estimates reach."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from servetop.analysis.exported.metric_spec import MetricSpec, Unit
from servetop.analysis.exported.metric_values import ExportedValue
from servetop.core.events import GpuSample


@dataclass(frozen=True, slots=True)
class GpuPeak:
    """The peaks of one GPU."""

    name: str
    """As the driver spells it, without the maker."""
    flops: float
    """Dense BF16 (V100: FP16) FLOP/s of its tensor cores."""
    bandwidth: float
    """Bytes/s of its memory."""


_T, _G = 1e12, 1e9
_DATA_SHEETS: Mapping[str, tuple[float, float]] = {
    "A10": (125 * _T, 600 * _G),
    "A100 80GB PCIe": (312 * _T, 1935 * _G),
    "A100-PCIE-40GB": (312 * _T, 1555 * _G),
    "A100-SXM4-40GB": (312 * _T, 1555 * _G),
    "A100-SXM4-80GB": (312 * _T, 2039 * _G),
    "H100 80GB HBM3": (989 * _T, 3350 * _G),
    "H100 NVL": (835 * _T, 3900 * _G),
    "H100 PCIe": (756 * _T, 2000 * _G),
    "H200": (989 * _T, 4800 * _G),
    "L4": (121 * _T, 300 * _G),
    "L40S": (362 * _T, 864 * _G),
    "V100-PCIE-16GB": (112 * _T, 900 * _G),
    "V100-PCIE-32GB": (112 * _T, 900 * _G),
    "V100-SXM2-16GB": (125 * _T, 900 * _G),
    "V100-SXM2-32GB": (125 * _T, 900 * _G),
}
"""FLOP/s and bytes/s by the name that NVML reports, from NVIDIA's data sheet of each product.

Where a data sheet prints the rate with 2:4 sparsity, the dense one is half of it. A partition (MIG) has another name,
and so no peak.
"""


def gpu_peak(name: str) -> GpuPeak | None:
    """Return the peaks of the GPU with this name; None if it is not in the table."""
    short = name.removeprefix("NVIDIA ").removeprefix("Tesla ")
    found = _DATA_SHEETS.get(short)
    return None if found is None else GpuPeak(short, *found)


def engine_gpus(samples: Iterable[GpuSample]) -> tuple[str, ...]:
    """Return the different names of the GPUs on which the engine holds memory; of all if that is unknown."""
    every = list(samples)
    own = [sample for sample in every if sample.engine_memory]
    return tuple(sorted({sample.name for sample in own or every}))


def common_peak(names: Collection[str]) -> GpuPeak | None:
    """Return the peaks of GPUs of a single kind; None for several kinds, none, or an unknown one."""
    return gpu_peak(next(iter(names))) if len(names) == 1 else None


def with_peak_shares(values: Sequence[ExportedValue], peak: GpuPeak | None) -> list[ExportedValue]:
    """Append the shares of the peak that specs ask for; those with the same `peak_share` are added up."""
    shares: dict[str, ExportedValue] = {}
    for value in values if peak is not None else ():
        name = value.spec.peak_share
        if peak is not None and name:
            most = peak.flops if value.spec.unit is Unit.FLOPS else peak.bandwidth
            before = shares[name].values if name in shares else 0.0
            share = replace(value, spec=_share_spec(value.spec), label=peak.name, values=before + value.values / most)
            shares[name] = share
    return [*values, *shares.values()]


def _share_spec(spec: MetricSpec) -> MetricSpec:
    return replace(spec, name=f"{spec.peak_share}:", unit=Unit.SHARE, peak_share="")
