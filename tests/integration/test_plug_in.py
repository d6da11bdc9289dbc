"""Packages of their own: the engine of docs/engines/writing-an-engine.md, the rest of how-to/write-a-plug-in.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from servetop.analysis.exported.metric_spec import Unit
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.recordings.read.reader import RecordingReader
from tests.clean_environment import MACHINE
from tests.harness import RAN, Servetop

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent
GUIDE = HERE.parents[1] / "docs" / "engines" / "writing-an-engine.md"
PLUG_INS = HERE.parents[1] / "docs" / "how-to" / "write-a-plug-in.md"
_FILE = re.compile(r"^`(?P<name>[\w.]+)`\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def _install(guide: Path, package: Path, site: Path, *, names: list[str]) -> None:
    """Install the package of a guide into a folder, as pip does."""
    files = {found["name"]: found["text"] for found in _FILE.finditer(guide.read_text())}
    assert sorted(files) == names
    for name, text in files.items():
        (package / name).write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--target", str(site), str(package)], check=True, env=MACHINE)


@pytest.fixture(scope="session")
def nimble(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a servetop beside which the guide's package is installed."""
    package, site = tmp_path_factory.mktemp("servetop-nimble"), tmp_path_factory.mktemp("site")
    names = ["pyproject.toml", "servetop_nimble.py", "test_nimble.py"]
    _install(GUIDE, package, site, names=names)
    _install(PLUG_INS, tmp_path_factory.mktemp("servetop-acme"), site, names=["pyproject.toml", "servetop_acme.py"])
    commands = tmp_path_factory.mktemp("bin")
    shutil.copy(HERE / "plug_in" / "nimble-server", commands)
    return {
        "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
    }


@pytest.fixture
def servetop(tmp_path: Path, nimble: dict[str, str]) -> Servetop:
    return Servetop(tmp_path, nimble)


def test_it_is_listed_among_the_engines(servetop: Servetop) -> None:
    listed = {each["name"]: each for each in json.loads(servetop("engines", "--json").out)}
    assert listed["nimble"]["installed"] == "yes"
    assert "generation_tokens_total" in listed["nimble"]["exports"]


def test_it_is_started_loaded_read_and_stopped(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "nimble.servetop"
    weights = str(tmp_path / "weights")
    load = ("--request-rate", "20", "--num-prompts", "30", "--output-len", "8", "--max-num-seqs", "4")
    done = servetop(
        "--engine", "nimble", "--model", weights, *load, "--record", str(recording), "--json", "--", "--fast"
    )  # fmt: skip
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 30
    reader = RecordingReader.open(recording)
    facts = reader.header.engine
    assert facts is not None
    assert (facts.title, facts.kv_blocks_total, facts.block_size, facts.max_num_seqs) == ("Nimble", 120, 16, 4)
    last = reader.engine_samples()[-1]
    assert (last.generation_tokens_total, last.requests_finished_total, last.first_tokens_total) == (240, 30, 30)
    assert not _processes_of(weights)
    table = {spec.name: spec for spec in exported_metrics(facts)}  # here the plug-in is not installed
    assert list(table) == ["steps", "tokens per step"]
    assert table["tokens per step"].unit is Unit.TOKENS
    found = {each["name"]: each["value"] for each in done.summary["engine_metrics"]}
    assert found["steps"] > 0
    assert found["tokens per step"] >= 2  # 8 tokens, 4 steps


def test_its_own_words_for_a_failed_start_are_told(servetop: Servetop) -> None:
    failed = servetop(
        "--engine", "nimble", "--model", "nowhere", "--headless", "--request-rate", "1", "--duration", "1"
    )
    assert failed.complaint == "Nimble did not start: Nimble found no weights at nowhere: check --model"


def test_a_package_adds_a_dataset_two_formats_and_a_section(servetop: Servetop, tmp_path: Path) -> None:
    recording, table, again, page = (tmp_path / name for name in ("a.servetop", "a.tsv", "b.servetop", "a.html"))
    load = ("--request-rate", "20", "--num-prompts", "20", "--output-len", "4")
    done = servetop("--dataset-name", "acme-questions", *load, "--record", str(recording), "--json")
    assert done.code in RAN, done.err
    assert done.summary["total_output_tokens"] == 10 * 4 + 10 * 60
    assert servetop("export", str(recording), "--format", "acme", "-o", str(table)).code == 0
    assert len(table.read_text().splitlines()) == 1 + 20
    assert servetop("import", str(table), "-o", str(again)).code == 0
    assert RecordingReader.open(again).request_count() == 20
    assert servetop("report", str(recording), "-o", str(page)).code == 0
    assert "ACME counts 20 requests of 20." in page.read_text()


def _processes_of(weights: str) -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"]) if weights in (each.info["cmdline"] or ())]
