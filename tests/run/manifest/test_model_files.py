"""The files of a model, local or in the hub's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.run.manifest.model_files import hub_cache, local_path, model_details

FILES = {
    "config.json": "{}", "tokenizer.json": "t", "tokenizer_config.json": "c", "model.safetensors.index.json": "i",
    "model-1.safetensors": "weights", "README.md": "r",
}  # fmt: skip


def written(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_a_local_model_has_digests_of_what_is_small_and_sizes_of_weights(tmp_path: Path) -> None:
    folder = written(tmp_path / "llama", FILES)
    found = model_details(str(folder), environ={})
    assert found["path"] == str(folder)
    assert list(found["config"]) == ["config.json"]
    assert list(found["tokenizer"]) == ["tokenizer.json", "tokenizer_config.json"]
    assert found["weights"]["model-1.safetensors"] == {"size": 7}
    assert "sha256" in found["weights"]["model.safetensors.index.json"]
    assert "README.md" not in str(found)


def test_a_copy_of_a_model_has_equal_digests_and_another_tokenizer_others(tmp_path: Path) -> None:
    one, copy = (written(tmp_path / name, FILES) for name in ("one", "copy"))
    other = written(tmp_path / "other", {**FILES, "tokenizer.json": "u"})
    parts = [{**model_details(str(each), environ={}), "path": ""} for each in (one, copy, other)]
    assert parts[0] == parts[1]
    assert [name for name in parts[0] if parts[0][name] != parts[2][name]] == ["tokenizer"]
    with_other = model_details(str(one), environ={}, tokenizer=str(other))
    assert with_other["tokenizer"] == parts[2]["tokenizer"]


def test_a_gguf_file_is_hashed_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    found = model_details(str(path), environ={})
    assert found["weights"]["model.gguf"]["hashed"] == "first MiB"
    assert "tokenizer" not in found


@pytest.mark.parametrize(("revision", "commit"), [("", "abc"), ("main", "abc"), ("v2", "def"), ("def", "def")])
def test_a_hub_name_is_found_in_the_cache_by_its_revision(tmp_path: Path, revision: str, commit: str) -> None:
    model = tmp_path / "hub" / "models--meta-llama--Llama-2-7b-hf"
    written(model / "refs", {"main": "abc", "v2": "def\n"})
    for each in ("abc", "def"):
        written(model / "snapshots" / each, FILES)
    found = model_details("meta-llama/Llama-2-7b-hf", environ={"HF_HOME": str(tmp_path)}, revision=revision)
    assert (found["revision"], found["path"]) == (commit, str(model / "snapshots" / commit))


@pytest.mark.parametrize("name", ["org/not-downloaded", "llama-2-7b", "", "a/../../b", "org/name/more"])
def test_a_model_that_is_not_here_has_no_details(tmp_path: Path, name: str) -> None:
    assert local_path(name, environ={"HF_HUB_CACHE": str(tmp_path)}) is None
    assert model_details(name, environ={"HF_HUB_CACHE": str(tmp_path)}) == {}


def test_the_cache_is_where_the_hub_library_has_it() -> None:
    assert hub_cache({"HF_HUB_CACHE": "/c", "HF_HOME": "/h"}) == Path("/c")
    assert hub_cache({"HF_HOME": "/h", "XDG_CACHE_HOME": "/x"}) == Path("/h/hub")
    assert hub_cache({"XDG_CACHE_HOME": "/x"}) == Path("/x/huggingface/hub")
    assert hub_cache({}) == Path.home() / ".cache/huggingface/hub"
