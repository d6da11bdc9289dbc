"""Names, sizes and digests of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from servetop.run.manifest import file_digests
from servetop.run.manifest.file_digests import FIRST_MIB, MIB, data_details, file_details, files_details


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_file_is_hashed_as_a_whole(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4097  # more than a block
    (tmp_path / "data").write_bytes(data)
    assert file_details(tmp_path / "data") == {"size": len(data), "sha256": sha256(data)}
    assert file_details(tmp_path / "data", None) == {"size": len(data)}
    first = {"size": len(data), "sha256": sha256(data[:MIB]), "hashed": "first MiB"}
    assert file_details(tmp_path / "data", FIRST_MIB) == first


def test_of_a_large_file_both_ends_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_digests, "LARGEST_WHOLE", 3 * MIB)
    data = b"a" * MIB + b"b" * (2 * MIB) + b"c" * MIB
    (tmp_path / "large").write_bytes(data)
    expected = {"size": 4 * MIB, "sha256": sha256(b"a" * MIB + b"c" * MIB), "hashed": "first and last MiB"}
    assert file_details(tmp_path / "large") == expected


def test_a_folder_has_its_files_by_path_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.parquet", "a/x.parquet", ".git/head", "a/.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert list(data_details(tmp_path)) == ["a/x.parquet", "b.parquet"]
    assert data_details(tmp_path)["b.parquet"]["sha256"] == sha256(b"b.parquet")


def test_a_folder_with_much_data_is_hashed_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_digests, "MOST_HASHED", 3)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("12")
    found = data_details(tmp_path)
    assert [each.get("hashed") for each in found.values()] == [None, None, "first and last MiB"]


def test_missing_files_are_left_out(tmp_path: Path) -> None:
    assert files_details([tmp_path / "missing"]) == {}
    assert data_details(tmp_path / "missing") == {}
