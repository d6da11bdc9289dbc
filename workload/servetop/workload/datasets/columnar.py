"""Parquet files and Hugging Face datasets saved to a folder, read batch by batch with pyarrow (an extra)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from servetop.core.errors import UsageError

_BATCH_ROWS = 256
_PARQUET = b"PAR1"
"""The first and the last bytes of a Parquet file."""
_SHORTEST = 12
"""Bytes of the shortest Parquet file: both marks, and the length of the index before the last."""


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
    """Raise UsageError for a Parquet file without its end, where its index is; no part of it can be read."""
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(_PARQUET)) == _PARQUET
            size = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size - len(_PARQUET)))
            ends = opened.read() == _PARQUET and size >= _SHORTEST
    except OSError as error:
        raise UsageError(f"cannot read {file} ({error.strerror or error}): check --dataset-path") from None
    if begins and not ends:
        raise UsageError(f"{file} is cut short (it does not end as a Parquet file does): download or write it again")


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
                yield from pyarrow.ipc.open_stream(source)
        else:
            yield from pyarrow.parquet.ParquetFile(file).iter_batches(_BATCH_ROWS)
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(
            f"cannot read {file} ({reason}): it is cut short or damaged: download or write it again"
        ) from None
