"""Parquet files and Hugging Face datasets saved to a folder, read batch by batch with pyarrow (an extra)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from servetop.core.errors import UsageError

_BATCH_ROWS = 256
_ARROW_FILE = b"ARROW1"
_MARKS = (
    ("a Parquet file", b"PAR1", b"PAR1", 12),
    ("an Arrow file", _ARROW_FILE, _ARROW_FILE, 18),
    ("an Arrow stream", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\0\0\0\0", 16),
)
"""Formats with their first and last bytes, and the size of the shortest file."""


def columnar_values(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Rows by column name, numbered from 1 over all files of a folder, sorted by name."""
    number = 0
    for file in _files(path):
        for batch in _batches(file):
            for values in batch.to_pylist():
                number += 1
                yield number, values


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix in (".parquet", ".arrow"))
    if not found:
        raise UsageError(f"{path} has no .parquet or .arrow files: save the dataset with save_to_disk")
    return found


def _check_complete(file: Path) -> None:
    """Raise UsageError for a file without the end of its format: a part of it, or all of it, cannot be read."""
    begin, end, size = _ends_of(file)
    for name, first, last, shortest in _MARKS:
        if begin.startswith(first) and not (end.endswith(last) and size >= shortest):
            raise UsageError(f"{file} is cut short (it does not end as {name} does): download or write it again")


def _ends_of(file: Path) -> tuple[bytes, bytes, int]:
    """Return the first and the last eight bytes of a file, and its size; UsageError if it cannot be read."""
    try:
        with file.open("rb") as opened:
            begin = opened.read(8)
            size = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size - 8))
            return begin, opened.read(), size
    except OSError as error:
        raise UsageError(f"cannot read {file} ({error.strerror or error}): check --dataset-path") from None


def _batches(file: Path) -> Iterator[Any]:
    _check_complete(file)
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            f"{file.name} needs pyarrow: install servetop with its extra, as in pip install 'servetop[datasets]'"
        ) from None
    try:
        if file.suffix == ".arrow":
            with pyarrow.memory_map(str(file)) as source:
                if source.read(len(_ARROW_FILE)) == _ARROW_FILE:
                    blocks = pyarrow.ipc.open_file(source)
                    yield from map(blocks.get_batch, range(blocks.num_record_batches))
                else:
                    source.seek(0)
                    yield from pyarrow.ipc.open_stream(source)
        else:
            yield from pyarrow.parquet.ParquetFile(file).iter_batches(_BATCH_ROWS)
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(
            f"cannot read {file} ({reason}): it is cut short or damaged: download or write it again"
        ) from None
