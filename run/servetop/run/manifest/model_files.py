"""The files of a model on this machine: those that decide what it computes, with their digests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servetop.run.manifest.file_digests import FIRST_MIB, files_details

CONFIG = ("config.json", "params.json")
TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "tekken.json",
    "chat_template.json",
    "chat_template.jinja",
)
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_INDEX = ".index.json"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def model_details(model: str, *, environ: Mapping[str, str], revision: str = "", tokenizer: str = "") -> dict[str, Any]:
    """Return the path, revision and files of a local model or one in the hub's cache; empty for any other.

    `tokenizer` is the model whose tokenizer is used, if it is another one.
    """
    found = local_path(model, environ=environ, revision=revision)
    if found is None:
        return {}
    details: dict[str, Any] = {"path": str(found)}
    if found.parent.name == "snapshots":
        details["revision"] = found.name
    if found.is_file():
        return {**details, "weights": files_details([found], FIRST_MIB)}
    elsewhere = local_path(tokenizer, environ=environ) if tokenizer else found
    parts = {
        "config": files_details(_existing(found, CONFIG)),
        "tokenizer": {} if elsewhere is None else tokenizer_details(elsewhere),
        "weights": _weights(found),
    }
    return details | {name: files for name, files in parts.items() if files}


def tokenizer_details(path: Path) -> dict[str, Any]:
    """Return the details of a tokenizer file, or of the tokenizer files in a folder."""
    return files_details([path] if path.is_file() else _existing(path, TOKENIZER))


def local_path(model: str, *, environ: Mapping[str, str], revision: str = "") -> Path | None:
    """Return the file or folder of a model: a local path, or its snapshot in the hub's cache; None if there is none."""
    path = Path(model).expanduser()
    if model and path.exists():
        return path.absolute()
    if not _HUB_NAME.fullmatch(model):
        return None
    folder = hub_cache(environ) / f"models--{model.replace('/', '--')}"
    try:
        commit = (folder / "refs" / (revision or "main")).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        commit = revision
    snapshot = folder / "snapshots" / commit
    return snapshot if commit and snapshot.is_dir() else None


def hub_cache(environ: Mapping[str, str]) -> Path:
    """Return the folder of downloaded models, which the hub library takes from the same variables."""
    if environ.get("HF_HUB_CACHE"):
        return Path(environ["HF_HUB_CACHE"]).expanduser()
    home = environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser() / "hub"


def _weights(folder: Path) -> dict[str, Any]:
    """Return the digests of the lists of weights, and the sizes of the weights, which are too large to hash."""
    files = sorted(each for each in folder.iterdir() if each.is_file())
    lists = files_details(each for each in files if each.name.endswith(_INDEX))
    return lists | files_details((each for each in files if each.suffix in WEIGHTS), None)


def _existing(folder: Path, names: tuple[str, ...]) -> list[Path]:
    return [folder / name for name in names if (folder / name).is_file()]
