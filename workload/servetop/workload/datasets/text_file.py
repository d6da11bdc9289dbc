"""Opens data files as text: compression and encoding are recognised by content, and files of other kinds refused."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from servetop.core.errors import UsageError
from servetop.core.text.sanitize import sanitize_line

_GZIP = b"\x1f\x8b"
_OTHER_KINDS = {
    b"PAR1": "is a Parquet file: give --dataset-name parquet",
    b"ARROW1": "is an Arrow file: give --dataset-name hf and its folder",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd: unpack it with zstd -d",
    b"BZh": "is compressed with bzip2: unpack it with bunzip2",
    b"\xfd7zXZ\0": "is compressed with xz: unpack it with unxz",
    b"PK\x03\x04": "is a zip archive or a spreadsheet: unpack it, or export it as CSV",
    b"SQLite format 3": "is an SQLite database: export its rows as CSV or JSON lines",
    b"%PDF": "is a PDF file: give a file of JSON lines or CSV",
    b"\x89HDF": "is an HDF5 file: export its rows as CSV or JSON lines",
    b"\x93NUMPY": "is a NumPy file: export its rows as CSV or JSON lines",
    b"\x80\x04": "is a pickle, which is never loaded: export its rows as JSON lines",
    b"version https://git-lfs": "is a Git LFS pointer instead of the data: run git lfs pull",
    b"<!DOCTYPE": "is a web page instead of the data: download the file itself",
    b"<!doctype": "is a web page instead of the data: download the file itself",
    b"<html": "is a web page instead of the data: download the file itself",
}
"""Why a file that begins with these bytes is refused, and what to do."""
_LOG_LINE = re.compile(
    rb"\s*(\([\w ]+pid=\d+\)\s*)?"
    rb"((DEBUG|INFO|WARN|WARNING|ERROR)\b:? +\S|\[?\d{4}-\d\d-\d\d[ T][\d.,:+Z-]+[\] ]+[^\d\s,;|])"
)
"""How a line of a log begins: with a level, or with a time and then words, and before them perhaps a process."""
_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by byte order mark; the longer marks first, because one begins with a shorter one."""
_SNIFFED = 512
_MAX_GZIPPED = 2
_SHOWN = 60
"""Most characters of a line that a message shows."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """Open a file as text, in UTF-8, UTF-16 or UTF-32, plain or gzipped; UsageError when opening or reading fails.

    Bytes that are not UTF-8 become lone surrogates, so that the row that holds them can be named.
    """
    encoding = ""
    try:
        with path.open("rb") as plain:
            stream = _unpacked(path, plain)
            start = stream.peek(_SNIFFED)[:_SNIFFED]
            refuse_other_kinds(path, start, gzipped=stream is not plain)
            encoding = _encoding(start)
            errors = "surrogateescape" if encoding == "utf-8-sig" else "strict"
            yield io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path} is not a complete gzip file ({error}): unpack it, or download it again") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid {encoding.upper()} ({error.reason}): convert it to UTF-8") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {path} ({why}): check --dataset-path") from None


def _unpacked(path: Path, plain: io.BufferedReader) -> io.BufferedReader:
    """Return the content of a file that is gzipped, perhaps twice; the name of the file does not matter."""
    stream = plain
    for _ in range(_MAX_GZIPPED):
        if not _is_gzip(stream):
            return stream
        stream = cast("io.BufferedReader", gzip.GzipFile(fileobj=stream, mode="rb"))
    if _is_gzip(stream):
        raise UsageError(f"{path} is gzipped more than {_MAX_GZIPPED} times: unpack it with gunzip")
    return stream


def refuse_other_kinds(path: Path, start: bytes, *, gzipped: bool = False) -> None:
    """Raise UsageError, which names the kind, for a file whose first bytes, unpacked, are not those of a text."""
    reason = next((reason for magic, reason in _OTHER_KINDS.items() if start.lstrip().startswith(magic)), "")
    if reason:
        kind, _, advice = reason.partition(": ")
        raise UsageError(
            f"{path} {kind}, gzipped: unpack it with gunzip, then {advice}" if gzipped else f"{path} {reason}"
        )
    if _LOG_LINE.match(start):
        line = sanitize_line(start.decode("utf-8", "replace").strip().splitlines()[0])
        shown = line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
        raise UsageError(f"{path} is a log (it begins with {shown!r}): give a file of JSON lines or CSV")


def is_parquet(path: Path) -> bool:
    """Whether the file begins as Parquet files do."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def _is_gzip(file: io.BufferedReader) -> bool:
    return file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP


def _encoding(start: bytes) -> str:
    """Return the encoding of a text by its byte order mark, or by the zeros of UTF-16 without one."""
    marked = next((name for bom, name in _BOMS.items() if start.startswith(bom)), "")
    if marked:
        return marked
    zeros = [byte == 0 for byte in start[:4]]
    if zeros == [False, True, False, True]:
        return "utf-16-le"
    return "utf-16-be" if zeros == [True, False, True, False] else "utf-8-sig"
