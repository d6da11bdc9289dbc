"""Exported results are read by the tools whose formats they have, which find the same figures in them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from servetop.cli.main import main
from tests.integration.harness import Vllm, skip_unless_all

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).with_name("vllm_statistics.py")
LOADS_REPORT = """
import sys
from guidellm.benchmark.schemas.report import GenerativeBenchmarksReport
for each in GenerativeBenchmarksReport.load_file(sys.argv[1]).benchmarks:
    rows = each.requests.successful
    means = (sum(getattr(row, name) for row in rows) / len(rows) for name in sys.argv[2:])
    print(len(rows), *means)
"""
LOADS = """
import sys
from pathlib import Path
from aiperf.common.models.export_models import JsonExportData
from aiperf.common.models.record_models import MetricRecordInfo
records, summary = (Path(each).read_text() for each in sys.argv[1:])
found = [MetricRecordInfo.model_validate_json(each) for each in records.splitlines()]
data = JsonExportData.model_validate_json(summary)
assert data.schema_version == JsonExportData.SCHEMA_VERSION
print(len(found), int(data.request_count.avg), data.time_to_first_token.p99)
"""

VALIDATES = """
import json, sys
from pathlib import Path
from llmd_benchmark_report.schema_v0_2 import BenchmarkReportV02
for name in sys.argv[1:]:
    report = BenchmarkReportV02.model_validate(json.loads(Path(name).read_text()))
    print(report.scenario.load.standardized.stage, report.results.request_performance.aggregate.requests.total)
"""
ROOT = Path(__file__).parents[2]


def python_of(peer: str, script: str = "install.sh") -> str:
    """Return the Python of an environment of its own with the locked packages of a peer, which is made once."""
    made = subprocess.run(
        ("bash", f"tests/corpus/peers/{script}", peer), cwd=ROOT, check=True, capture_output=True, text=True
    )
    return str(Path(made.stdout.split()[-1]) / "bin" / "python")


@pytest.mark.parametrize("stage", ["0", "1"])
def test_vllm_computes_the_exported_statistics_from_the_exported_lists(
    vllm: Vllm, tmp_path: Path, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "result.json"
    assert main(["export", "sample", "--format", "vllm", "--stage", stage, "-o", str(target)]) == 0
    capsys.readouterr()
    done = subprocess.run([vllm.python, str(PROGRAM), str(target)], check=True, capture_output=True, text=True)
    result, found = json.loads(target.read_bytes()), json.loads(done.stdout)
    lengths = found.pop("output_lens")
    assert {name: result[name] for name in found} == pytest.approx(found, rel=1e-12)
    assert lengths == result["output_lens"]


def test_aiperf_loads_the_exported_artifacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skip_unless_all("the loader of AIPerf")
    python = python_of("aiperf")
    assert main(["export", "sample", "--format", "aiperf", "--stage", "0", "-o", str(tmp_path)]) == 0
    files = capsys.readouterr().out.split()
    done = subprocess.run([python, "-c", LOADS, *files], check=True, capture_output=True, text=True)
    summary = json.loads(Path(files[1]).read_bytes())
    assert done.stdout.split() == ["54", "54", str(summary["time_to_first_token"]["p99"])]


def test_guidellm_loads_the_exported_benchmarks_and_computes_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skip_unless_all("the loader of guidellm, which brings torch,")
    python = python_of("guidellm", "install_with_torch.sh")
    assert main(["export", "sample", "--format", "guidellm", "-o", str(tmp_path)]) == 0
    (file,) = capsys.readouterr().out.split()
    command = [python, "-c", LOADS_REPORT, file, "time_to_first_token_ms", "request_latency"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = [[float(each) for each in line.split()] for line in done.stdout.splitlines()]
    metrics = [each["metrics"] for each in json.loads(Path(file).read_bytes())["benchmarks"]]
    for (count, ttft, latency), known in zip(found, metrics, strict=True):
        assert count == known["request_totals"]["successful"]
        assert ttft == pytest.approx(known["time_to_first_token_ms"]["successful"]["mean"], rel=1e-5)
        assert latency == pytest.approx(known["request_latency"]["successful"]["mean"], rel=1e-5)


def test_the_schema_of_llm_d_accepts_the_exported_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = python_of("llm-d")
    assert main(["export", "sample", "--format", "llm-d", "-o", str(tmp_path)]) == 0
    files = capsys.readouterr().out.split()
    done = subprocess.run([python, "-c", VALIDATES, *files], check=True, capture_output=True, text=True)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["0", "54"],
        ["1", "390"],
        ["2", "200"],
        ["3", "159"],
    ]
