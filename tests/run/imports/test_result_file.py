"""A file of results is recognised by its content; what is none is refused in one line that says what to do."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from servetop.recordings.library.catalog import resolve
from servetop.run.imports.result_file import FORMATS, read_results

RESULTS = Path(__file__).parents[2] / "corpus" / "results"
RESULT, RECORDS = RESULTS / "vllm-rate.json", RESULTS / "aiperf" / "profile_export.jsonl"


def test_a_result_is_recognised_with_and_without_its_name() -> None:
    assert [len(read_results(RESULT, form)[0].requests) for form in (None, "vllm")] == [24, 24]
    assert [len(read_results(RECORDS, form)[0].requests) for form in (None, "aiperf")] == [100, 100]


WHOLE = RESULT.read_bytes()


def test_each_line_of_appended_results_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(WHOLE + b"\n" + WHOLE)
    assert [len(each.requests) for each in read_results(path)] == [24, 24]


REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "blank": (b" \n", "it is empty"),
    "csv": (b"ttft,tpot\n1,2\n", "it is not JSON, or cut off (expecting value at line 1, column 1)"),
    "cut off": (WHOLE[:3000], "it is not JSON, or cut off ("),
    "not UTF-8": (b'{"\xff": 1}', "it is not JSON, or cut off (not UTF-8)"),
    "deep": (b"[" * 100_000, "it is not JSON, or cut off (nested too deeply)"),
    "list": (b"[1, 2]", "no known tool wrote it: give a result of vllm bench serve"),
    "other tool": (b'{"mean_ttft_ms": 4.5}', "no known tool wrote it: give a result of vllm bench serve"),
    "statistics": (
        b'{"model_id": "m", "backend": "vllm", "completed": 3, "mean_ttft_ms": NaN}',
        "it has statistics but no requests",
    ),
    "appended and cut off": (WHOLE + b"\n" + WHOLE[:-3], "it is not JSON, or cut off ("),
    "record cut off": (RECORDS.read_bytes()[:5000], "line 10 is not JSON, or cut off: give a whole file of results"),
    "list after a record": (RECORDS.read_bytes().splitlines()[0] + b"\n[]\n", "line 2 is not a JSON object"),
    "gzip": (gzip.compress(b"{}"), "it is compressed: unpack it"),
    "recording": (resolve("sample").read_bytes(), "it is a recording or another database"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_result_is_refused(case: str, tmp_path: Path) -> None:
    content, reason = REFUSED[case]
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_results(path)
    assert str(refused.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(refused.value)


def test_a_larger_file_than_memory_allows_is_refused_without_reading_it_whole() -> None:
    with pytest.raises(UsageError, match="it is larger than 0 MiB, the most that is read"):
        read_results(RESULT, max_bytes=2000)


@pytest.mark.parametrize(("name", "reason"), [("none.json", "no such file or directory"), (".", "is a directory")])
def test_a_file_that_cannot_be_read_is_one_line(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        read_results(tmp_path / name)


def test_the_format_on_the_command_line_overrules_the_content(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"mean_ttft_ms": 4.5}), encoding="utf-8")
    for name in FORMATS:
        with pytest.raises(UsageError, match=r"statistics but no requests|is not a Unix time|has no benchmarks"):
            read_results(path, name)
