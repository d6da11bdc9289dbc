"""Tokenizer files for tests."""

import base64
from pathlib import Path

import pytest


def write_ranks(folder: Path) -> Path:
    """Write a tiktoken file whose tokens are all bytes, ` the` and ` a`."""
    pytest.importorskip("tiktoken")
    tokens = [*(bytes([value]) for value in range(256)), b" t", b"he", b" the", b" a"]
    lines = (f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens))
    file = folder / "tiny.tiktoken"
    file.write_text("".join(lines))
    return file
