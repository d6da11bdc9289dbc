"""Sources are opened, unpacked and recognised by their content."""

import gzip
from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from servetop.workload.shape.log_source import FORMATS, TableLog, recognised, source_lines
from servetop.workload.shape.logged_request import UnreadableLine

LINES = {
    "json": '{"ts": 1, "usage": {"prompt_tokens": 4}}',
    "vllm": "(APIServer pid=9) INFO 11-28 14:03:13 [async_llm.py:578] Added request a.",
    "otlp": '{"resourceSpans": []}',
    "mooncake": '{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1]}',
    "table": "TIMESTAMP,ContextTokens,GeneratedTokens",
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("packed", [False, True])
def test_a_source_is_recognised_by_its_lines(name: str, packed: bool, tmp_path: Path) -> None:
    path, text = tmp_path / "log", ("" if name == "table" else "start\n\n") + LINES[name] + "\n"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with source_lines(str(path), 1) as lines:
        found, read = recognised(lines, 1)
        assert list(lines) == []
    assert (found, read[-1][1]) == (name, LINES[name] + "\n")
    assert found in FORMATS


def test_the_complaint_about_a_source_has_its_number_only(tmp_path: Path) -> None:
    path = tmp_path / "customer"
    with pytest.raises(UsageError, match="cannot read source 2") as missing, source_lines(str(path), 2):
        pass
    assert "customer" not in str(missing.value)
    path.write_bytes(gzip.compress(b"x" * 10_000)[:20])
    with pytest.raises(UsageError, match="source 3 is not a complete gzip file"), source_lines(str(path), 3) as lines:
        list(lines)
    path.write_text("secret words\n")
    with source_lines(str(path), 4) as lines, pytest.raises(UsageError, match="format of source 4") as unknown:
        recognised(lines, 4)
    assert "secret" not in str(unknown.value)


def test_rows_of_a_table_are_requests() -> None:
    log = TableLog()
    assert list(log.events("TIMESTAMP,ContextTokens,GeneratedTokens\r\n")) == []
    (found,) = log.events("2023-11-16 18:15:46.6805900,374,44\r\n")
    assert (found.at % 60, found.input_tokens, found.output_tokens) == (pytest.approx(46.68059), 374, 44)  # type: ignore[union-attr]
    for line in ("2023-11-16 18:15:46,0,44", "soon,1,2", ""):
        with pytest.raises(UnreadableLine):
            list(log.events(line))


def test_a_table_with_other_columns_or_without_times_is_unreadable() -> None:
    with pytest.raises(UnreadableLine):
        list(TableLog().events("name,age"))
    lengths = TableLog()
    assert list(lengths.events("num_prefill_tokens,num_decode_tokens")) == []
    with pytest.raises(UnreadableLine):
        list(lengths.events("4,5"))
