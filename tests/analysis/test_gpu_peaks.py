"""Shares of a GPU's peak: known names only, and memory reads and writes together."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.analysis.exported.gpu_peaks import common_peak, engine_gpus, gpu_peak, with_peak_shares
from servetop.analysis.exported.metric_spec import MetricKind, MetricSpec, Unit
from servetop.analysis.exported.metric_values import ExportedValue
from servetop.core.events import GpuSample

GIB = 2**30


def estimate(name: str, unit: Unit, value: float, share: str) -> ExportedValue:
    spec = MetricSpec(group="G", name=name, kind=MetricKind.RATE, series=(name,), unit=unit, peak_share=share)
    return ExportedValue(spec=spec, source=f"{name}_total", values=np.array([value]))


@pytest.mark.parametrize(
    ("name", "tflops", "gigabytes"),
    [
        ("NVIDIA H100 80GB HBM3", 989, 3350),
        ("NVIDIA H100 PCIe", 756, 2000),
        ("NVIDIA A100-SXM4-40GB", 312, 1555),
        ("NVIDIA L4", 121, 300),
        ("Tesla V100-SXM2-32GB", 125, 900),
    ],
)
def test_a_gpu_is_found_by_the_name_that_its_driver_reports(name: str, tflops: float, gigabytes: float) -> None:
    peak = gpu_peak(name)
    assert peak is not None
    assert (peak.flops, peak.bandwidth) == (tflops * 1e12, gigabytes * 1e9)


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA L40", "NVIDIA H100", "AMD MI300X", ""])
def test_a_partition_and_an_unknown_gpu_have_no_peak(name: str) -> None:
    assert gpu_peak(name) is None


def test_the_engines_gpus_are_those_on_which_it_holds_memory() -> None:
    display = GpuSample(at=1.0, index=0, name="NVIDIA RTX A2000")
    mine = [GpuSample(at=1.0, index=index, name="NVIDIA L4", engine_memory=GIB) for index in (1, 2)]
    assert engine_gpus([display, *mine]) == ("NVIDIA L4",)
    assert engine_gpus([display, GpuSample(at=1.0, index=1, name="NVIDIA L4")]) == ("NVIDIA L4", "NVIDIA RTX A2000")
    assert common_peak(("NVIDIA L4",)) == gpu_peak("NVIDIA L4")
    assert common_peak(("NVIDIA L4", "NVIDIA L40S")) is None
    assert common_peak(()) is None


def test_reads_and_writes_share_the_bandwidth_and_the_rest_stays_as_it_is() -> None:
    values = [
        estimate("flops", Unit.FLOPS, 12.1e12, "MFU"), estimate("reads", Unit.BYTES_PER_SECOND, 100e9, "MBU"),
        estimate("writes", Unit.BYTES_PER_SECOND, 50e9, "MBU"), estimate("moved", Unit.BYTES_PER_SECOND, 1e9, ""),
    ]  # fmt: skip
    *same, mfu, mbu = with_peak_shares(values, gpu_peak("NVIDIA L4"))
    assert same == values
    assert [(each.spec.name, each.label, each.spec.unit, each.values.tolist()) for each in (mfu, mbu)] == [
        ("MFU:", "L4", Unit.SHARE, [pytest.approx(0.1)]),
        ("MBU:", "L4", Unit.SHARE, [pytest.approx(0.5)]),
    ]
    assert with_peak_shares(values, None) == values
