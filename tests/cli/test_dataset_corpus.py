"""`servetop dataset` on every data file of the corpus: the rows of its right reading, or one line that refuses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.core.errors import ExitCode
from tests.corpus.data_corpus import DataCase, load_data, read_data

CASES = load_data()


def words(case: DataCase, path: Path) -> list[str]:
    named = ["--dataset-name", case.facts["dataset"]] if case.facts.get("dataset") else []
    column = ["--dataset-column", case.facts["column"]] if case.facts.get("column") else []
    return ["dataset", str(path), *named, *column]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_file_is_shown_as_it_is_read_or_refused_in_one_line(
    case: DataCase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data"
    path.write_bytes(case.file_body)
    code = main([*words(case, path), "--json"])
    out, err = capsys.readouterr()
    if "refusal" in case.facts:
        said = json.loads(out)["remarks"][0] if code == ExitCode.OK else err  # shown as far as it can be read
        assert (code in (ExitCode.OK, ExitCode.USAGE), err.count("\n")) == (True, int(code != ExitCode.OK))
        assert case.facts["refusal"] in said
        return
    reading = read_data(case, path)
    if not reading.rows:
        assert (code, err.count("\n")) == (ExitCode.USAGE, 1)
        return
    assert (code, json.loads(out)["rows"], err) == (ExitCode.OK, len(reading.rows), "")
    assert main([*words(case, path), "--rows", "2"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert f"rows             {len(reading.rows):,}" in shown.splitlines()
