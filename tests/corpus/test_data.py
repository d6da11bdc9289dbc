"""servetop reads every data file of the corpus right, or refuses it in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from servetop.workload.prompts.preview import preview
from tests.corpus.data_corpus import COLUMNS, DataCase, load_data, read_data, read_strictly

CASES = load_data()
READ = [case for case in CASES if "refusal" not in case.facts]
REFUSED = [case for case in CASES if "refusal" in case.facts]
BAD = [case for case in READ if "bad" in case.facts]


@pytest.mark.parametrize("case", READ, ids=[case.name for case in READ])
def test_a_data_file_is_read_as_its_reading_says(case: DataCase, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(case.file_body)
    reading = read_data(case, path)
    assert list(reading.names) == case.expected("names")
    assert {key: reading.column(key) for key in COLUMNS if key in case.facts} == {
        key: case.expected(key) for key in COLUMNS if key in case.facts
    }
    reasons, left_out = case.facts.get("left_out", {}), reading.left_out
    assert {reason: sum(left_out[each] for each in left_out if reason in each) for reason in reasons} == reasons
    assert left_out.total() == sum(reasons.values())
    assert (reading.bad, case.facts.get("first_bad", "") in reading.first_bad) == (case.facts.get("bad", 0), True), (
        reading.first_bad
    )
    assert ("broken" in case.facts, case.facts.get("broken", "") in reading.broken) == (bool(reading.broken), True)


@pytest.mark.parametrize("case", READ, ids=[case.name for case in READ])
def test_a_preview_has_the_same_rows(case: DataCase, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(case.file_body)
    reading = read_data(case, path)
    shown = preview(case.workload(path, reading.names), examples=len(reading.rows))
    assert shown.rows == len(reading.rows)
    assert [row.text for row in shown.examples] == reading.column("texts")
    assert bool(shown.remarks) == bool(reading.bad or reading.left_out or reading.broken)


@pytest.mark.parametrize("case", REFUSED, ids=[case.name for case in REFUSED])
def test_a_file_that_is_no_dataset_is_refused_in_one_line(case: DataCase, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(case.file_body)
    with pytest.raises(UsageError) as refused:
        read_strictly(case, path)
    assert case.facts["refusal"] in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("case", BAD, ids=[case.name for case in BAD])
def test_a_bad_row_ends_a_strict_reading_with_its_place(case: DataCase, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(case.file_body)
    with pytest.raises(UsageError) as refused:
        read_strictly(case, path)
    assert case.facts["first_bad"] in str(refused.value)
    assert str(refused.value).endswith("fix it, or add --skip-bad-rows") or "choose with" in str(refused.value)
