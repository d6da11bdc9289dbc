"""Files of prompts are recognised by their content, whatever `--dataset-name` calls them."""

import gzip
import itertools
import json
from pathlib import Path

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.build import prompts_for
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.datasets.shared_dataset import SharedDataset
from servetop.workload.prompts.dataset_options import likely_names
from servetop.workload.prompts.preview import preview
from servetop.workload.validation import resolve_workload


def taken(config: WorkloadConfig, count: int, skipped: SkippedRows | None = None) -> list[Prompt]:
    return list(itertools.islice(prompts_for(config, (5, 0), dataset=SharedDataset(config, skipped)).prompts(), count))


PROMPTS = [{"prompt": "One?", "output_tokens": 7}, {"prompt": "Zwei, oder drei?", "output_tokens": 8}]
TABLE = 'prompt,output_tokens\nOne?,7\n"Zwei, oder drei?",8\n'
CONTENTS = {
    "lines": "\n".join(map(json.dumps, PROMPTS)),
    "array": json.dumps(PROMPTS),
    "indented array": json.dumps(PROMPTS, indent=2),
    "indented objects": "\n".join(json.dumps(row, indent=2) for row in PROMPTS),
    "commas": TABLE,
    "capitals": TABLE.replace("prompt", "Prompt"),
    "tabs": TABLE.replace(",7", "\t7").replace(",8", "\t8").replace("prompt,", "prompt\t"),
    "semicolons": TABLE.replace(",7", ";7").replace(",8", ";8").replace("prompt,", "prompt;"),
    "carriage returns": TABLE.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gzip"])
@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_of_prompts_is_recognised_by_its_content(tmp_path: Path, content: str, encoding: str) -> None:
    path, text = tmp_path / "data", CONTENTS[content]
    path.write_bytes(gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding))
    for name in ("custom", "jsonl", "csv", "parquet"):
        prompts = taken(WorkloadConfig(dataset=name, dataset_path=str(path)), 2)
        assert [(each.text, each.output_tokens) for each in prompts] == [("One?", 7), ("Zwei, oder drei?", 8)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x28\xb5\x2f\xfd\x04\x00", "is compressed with zstd: unpack it with zstd -d"),
        (b"PK\x03\x04\x14\x00", "is a zip archive or a spreadsheet"),
        (b"<!DOCTYPE html><html>", "is a web page instead of the data"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
        ("prompt\nCafé\n".encode("latin-1"), r"line 2, column 'prompt': expected text in UTF-8 .* found 'Caf"),
        ("prompt\nCafé\n".encode("utf-16")[:-1], "is not valid UTF-16"),
    ],
)
def test_a_file_of_another_kind_is_rejected_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        resolve_workload(WorkloadConfig(dataset="custom", dataset_path=str(path)))


@pytest.mark.parametrize("name", ["mooncake", "trace", "sharegpt", "conversations"])
def test_every_loader_refuses_parquet_or_reads_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(UsageError, match=r"is a Parquet file|is cut short \(it does not end as a Parquet file does\)"):
        resolve_workload(WorkloadConfig(dataset=name, dataset_path=str(path)))


@pytest.mark.parametrize("body", [b"PAR1", b"PAR1 and no more", b"PAR1PAR1", b"PAR1 PAR"])
def test_a_parquet_file_that_is_cut_short_is_named_without_pyarrow(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(body)
    with pytest.raises(UsageError) as refused:
        preview(WorkloadConfig(dataset="parquet", dataset_path=str(path)), examples=0)
    reason = "is cut short (it does not end as a Parquet file does): download or write it again"
    assert str(refused.value) == f"{path} {reason}"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\xff\xff\xff\xff", "an Arrow stream"),
        (b"\xff\xff\xff\xff\0\0\0\0", "an Arrow stream"),
        (b"\xff\xff\xff\xff\x10\0\0\0 schema, and half a batch", "an Arrow stream"),
        (b"ARROW1\0\0 batches", "an Arrow file"),
        (b"ARROW1", "an Arrow file"),
    ],
)
@pytest.mark.parametrize("saved", [False, True])
def test_an_arrow_file_that_is_cut_short_is_named_without_pyarrow(
    tmp_path: Path, body: bytes, kind: str, saved: bool
) -> None:
    path = tmp_path / "data-00000-of-00001.arrow"
    path.write_bytes(body)
    workload = WorkloadConfig(dataset="hf", dataset_path=str(tmp_path))
    if not saved:
        workload = WorkloadConfig(dataset="parquet", dataset_path=str(path))
    with pytest.raises(UsageError) as refused:
        preview(workload, examples=0)
    assert str(refused.value) == f"{path} is cut short (it does not end as {kind} does): download or write it again"


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_an_arrow_file_is_refused_wherever_it_is_cut(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "data.arrow"
    table = pyarrow.table({"prompt": ["One?", "Two?", "Three?"] * 20})
    opened = pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file
    with pyarrow.OSFile(str(path), "wb") as sink, opened(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=20)
    config = WorkloadConfig(dataset="parquet", dataset_path=str(path))
    assert [prompt.text for prompt in taken(config, 4)] == ["One?", "Two?", "Three?", "One?"]
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(UsageError, match=r"cut short|cannot read|no usable|no rows"):
            preview(config, examples=0)


@pytest.mark.parametrize(
    "line",
    [
        "INFO 11-25 10:00:01 [api_server.py:120] vLLM API server version 0.9.1, args: Namespace()",
        "(APIServer pid=12) INFO 11-25 10:00:01 [api_server.py:12] x",
        "INFO:     Started server process [1]",
        "[2026-11-25 10:00:01] server_args=ServerArgs(model_path='m')",
        "2026-11-25T10:00:01.123456Z  INFO text_generation_launcher: Args",
        "2026-11-25 10:00:01,123 - engine - INFO - ready",
    ],
)
def test_the_log_of_an_engine_is_refused_by_name(tmp_path: Path, line: str) -> None:
    path = tmp_path / "data.log"
    path.write_text(f"{line}\nGET /metrics, 200\n")
    with pytest.raises(UsageError, match=r"data.log is a log \(it begins with .*\): give a file of JSON lines"):
        likely_names(path)


@pytest.mark.parametrize(
    "text", ["INFO\nWhy?\n", "2023-11-16 18:17:03, 374\n", "2023-11-16 18:17:03\t374\n", "Information on x\nWhy?\n"]
)
def test_a_table_is_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert likely_names(path) == ("csv",)


@pytest.mark.parametrize("length", [131_072, 131_073, 2_000_000])
def test_long_prompts_of_a_table_are_read_whole(tmp_path: Path, length: int) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"id,prompt\n1,{'x' * length}\n2,short\n")
    config = WorkloadConfig(dataset="csv", dataset_path=str(path))
    assert [len(prompt.text) for prompt in taken(config, 2)] == [length, 5]


def test_bad_rows_do_not_end_a_load(tmp_path: Path) -> None:
    path, skipped = tmp_path / "data.jsonl", SkippedRows()
    path.write_text('{"prompt": "One?"}\n{"prompt": "half \\ud83d"}\n{"prompt": "Two?"}\n' + "x" * (17 << 20))
    config = WorkloadConfig(dataset="custom", dataset_path=str(path))
    assert [each.text for each in taken(config, 3, skipped=skipped)] == ["One?", "Two?", "One?"]
    assert (skipped.skipped, skipped.rows_in_pass) == (2, 2)
    assert "line 2, column 'prompt'" in skipped.first_skipped
