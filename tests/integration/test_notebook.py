"""The notebook of the docs is executed, and tables of a recording are taken by pandas, Polars and Arrow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clean_environment import MACHINE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
INSTALL = ("bash", "tests/corpus/peers/install.sh", "notebook")
NOTEBOOK = ROOT / "docs" / "notebooks" / "first-measurement.ipynb"
EXECUTE = """
import sys
import nbclient
import nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
for cell in book.cells:
    for output in cell.get("outputs", ()):
        print(output.get("text") or output["data"].get("text/html") or output["data"]["text/plain"])
"""
TABLES = """
import numpy, pandas, polars, pyarrow
from servetop import api
with api.open_recording("sample:overload") as recording:
    requests, stages = recording.requests(), recording.stages()
frame, polar, arrow = requests.to_pandas(), requests.to_polars(), requests.to_arrow()
assert frame.shape == polar.shape == arrow.shape == (len(requests), len(requests.names)) == (803, 31)
assert list(frame) == polar.columns == arrow.column_names == list(requests.names)
known = ~numpy.isnan(requests["ttft_s"])
for values in (frame.ttft_s, polar["ttft_s"], arrow["ttft_s"].to_pandas()):
    assert numpy.array_equal(values.to_numpy()[known], requests["ttft_s"][known])
missing = int((~known).sum())
assert polar["ttft_s"].null_count() == arrow["ttft_s"].null_count == frame.ttft_s.isna().sum() == missing
assert polars.DataFrame(requests).equals(polar)
assert pyarrow.table(requests).equals(arrow)
assert (frame.status == "ok").all() and arrow["status"].type == pyarrow.string()
assert stages.to_pandas().label.tolist() == stages["label"].tolist()
print("equal")
"""
PARQUET = """
import sys, pandas, polars, pyarrow.parquet
from servetop import api
from servetop.cli.main import main
for name in ("requests", "ticks", "stages"):
    assert main(["export", "sample:overload", "--format", "parquet", "--table", name, "-o", f"{name}.parquet"]) == 0
with api.open_recording("sample:overload") as recording:
    tables = {"requests": recording.requests(), "ticks": recording.ticks(), "stages": recording.stages()}
    for name, table in tables.items():
        assert pyarrow.parquet.read_table(f"{name}.parquet").equals(table.to_arrow())
        assert polars.read_parquet(f"{name}.parquet").equals(table.to_polars())
        assert list(pandas.read_parquet(f"{name}.parquet")) == list(table.names)
about = pyarrow.parquet.read_schema("ticks.parquet").metadata
assert about[b"recording"] == b"overload" and float(about[b"wall_epoch_s"]) > 1e9
print("equal")
"""


@pytest.fixture(scope="module")
def environment() -> Mapping[str, str]:
    """The environment variables of a process that has the libraries beside servetop."""
    made = subprocess.run(INSTALL, cwd=ROOT, check=True, capture_output=True, text=True)
    (packages,) = Path(made.stdout.split()[-1]).glob("lib/python*/site-packages")
    return {**MACHINE, "PYTHONPATH": str(packages)}


def test_the_notebook_of_the_docs_runs(environment: Mapping[str, str], tmp_path: Path) -> None:
    book = [sys.executable, "-c", EXECUTE, str(NOTEBOOK)]
    done = subprocess.run(book, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "verdict" in done.stdout
    assert "31 columns" in done.stdout
    assert "no difference" in done.stdout.lower() or "cannot tell" in done.stdout.lower()
    assert {each.name for each in tmp_path.iterdir()} == {"run.servetop", "again.servetop", "report.html"}


def test_tables_are_taken_by_pandas_polars_and_arrow(environment: Mapping[str, str], tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TABLES], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "equal\n", done.stderr[-3000:]


def test_parquet_files_hold_the_tables(environment: Mapping[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARQUET]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.endswith("equal\n"), done.stderr[-3000:]
    assert {each.name for each in tmp_path.iterdir()} == {"requests.parquet", "ticks.parquet", "stages.parquet"}
