"""Parquet files and Hugging Face datasets saved to a folder, read batch by batch with pyarrow (an extra)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from servetop.core.errors import UsageError

_BATCH_ROWS = 256


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


def _batches(file: Path) -> Iterator[Any]:
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
                yield from pyarrow.ipc.open_stream(source)
        else:
            yield from pyarrow.parquet.ParquetFile(file).iter_batches(_BATCH_ROWS)
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"cannot read {file} ({reason}): is the file complete?") from None
