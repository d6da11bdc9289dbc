"""The package of docs/how-to/write-a-plug-in.md works as it stands, in each of its four groups."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from servetop import api
from servetop.cli.main import main
from tests.docs.pages import blocks
from tests.house.source_tree import TOP
from tests.plug_in_package import install

GUIDE = TOP / "docs" / "how-to" / "write-a-plug-in.md"


def installed(folder: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install the package whose files the guide puts into a folder; return the text of its module."""
    every = blocks(GUIDE, "toml") | blocks(GUIDE)
    files = {Path(name).name: text for name, text in every.items() if Path(name).parent == Path(folder)}
    module = f"servetop_{folder or 'acme'}"
    assert sorted(files) == ["pyproject.toml", f"{module}.py"]
    project = tomllib.loads(files["pyproject.toml"])["project"]
    install(site, monkeypatch, project["entry-points"], {module: files[f"{module}.py"]})
    return "".join(files.values())


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed("", tmp_path / "site", monkeypatch)


def test_the_smallest_is_ten_lines_and_writes_one_for_each_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len([line for line in installed("ttft", tmp_path / "other", monkeypatch).splitlines() if line]) == 10
    target = tmp_path / "ttft.txt"
    assert main(["export", "sample", "--format", "ttft", "-o", str(target)]) == 0
    with api.open_recording("sample") as sample:
        assert target.read_text(encoding="utf-8").count("\n") == len(sample.requests())


def test_its_export_is_read_by_its_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, recording = tmp_path / "run.tsv", tmp_path / "again.servetop"
    assert main(["export", "sample", "--format", "acme", "-o", str(table)]) == 0
    assert capsys.readouterr().err == "servetop: not in format acme: requests that failed\n"
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    assert main(["import", str(table), "-o", str(recording)]) == 0
    assert "run.tsv: ACME does not write when a request ended" in capsys.readouterr().err
    with api.open_recording(recording) as again, api.open_recording("sample") as sample:
        served = sample.requests()["status"] == "ok"
        assert len(rows) == len(again.requests()) == served.sum()
        assert sorted(again.requests()["ttft_s"]) == pytest.approx(
            sorted(sample.requests()["ttft_s"][served]), abs=2e-6
        )
        assert again.summary().requests.completed == served.sum()


def test_its_section_is_in_the_report_and_its_text_is_escaped(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert main(["report", "sample", "-o", str(target)]) == 0
    page = target.read_text(encoding="utf-8")
    assert "<h2>ACME&#x27;s view</h2><p>ACME counts 803 requests of 803.</p>" in page
    assert "<svg" in page


def test_its_dataset_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dataset", "acme-questions", "--json"]) == 0
    assert [each["text"] for each in json.loads(capsys.readouterr().out)["examples"]] == [
        "What does ACME make?", "Describe an anvil in one paragraph.",
    ]  # fmt: skip
    target = tmp_path / "run.servetop"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))  # of the sender processes
    load = ("--request-rate", "50", "--num-prompts", "6", "--output-len", "4", "--store-texts")
    code = main(["--dataset-name", "acme-questions", *load, "--headless", "--record", str(target)])
    assert code in (0, 98), capsys.readouterr().err
    with api.open_recording(target) as recording:
        assert sorted(recording.requests()["output_tokens"].tolist()) == [4, 4, 4, 60, 60, 60]
        texts = {each.prompt_text for each in recording.reader.requests(0, 1e9)}
    assert texts == {"What does ACME make?", "Describe an anvil in one paragraph."}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["export", "--help"], "Of plug-ins: acme."),
        (["import", "--help"], "Of plug-ins: acme."),
        (["audit", "--help-all"], "Of plug-ins: acme."),
        (["--help-all"], "Of plug-ins: acme-questions."),
        (["export", "--format", "xml"], "perfetto, openmetrics or acme"),
        (["--dataset-name", "acme-question"], "did you mean acme-questions?"),
        (["--dataset-name", "zzz"], "timed_trace, acme-questions"),
        (["--dataset-name", "acme-questions", "--dataset-path", "x"], "acme-questions reads no file: leave out"),
    ],
)
def test_help_and_errors_name_what_it_adds(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    printed = capsys.readouterr()
    assert text in re.sub(r"\s+", " ", printed.out + printed.err).replace("- ", "-")


READ_NONE = """
import sys
sys.path[:0] = {path!r}
from servetop.cli.main import main
try:
    main({arguments!r})
finally:
    print(sorted({{"servetop_acme", "importlib.metadata"}} & set(sys.modules)))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["export", "sample", "--format", "csv"]])
def test_nothing_is_read_of_plug_ins_where_none_is_needed(arguments: list[str]) -> None:
    program = READ_NONE.format(path=sys.path, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]"
