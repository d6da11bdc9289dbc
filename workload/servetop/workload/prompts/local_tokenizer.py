"""Tokenizers from local files: `tokenizer.json`, tiktoken rank files, SentencePiece models.

The libraries are an extra (`servetop[tokenizers]`); each is imported only to load a file of its kind.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.prompts.prompt_source import PromptSource

_INSTALL = "pip install 'servetop[tokenizers]'"
_ROUNDS = 8
"""Attempts to fit a text: cutting between two tokens can change their number by one."""
_FILLING = " the"
"""Text of one token in the usual vocabularies."""
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = ((60_000, _GPT2), (130_000, _CL100K))
"""Pre-tokenization patterns by the largest number of ranks: gpt2 and p50k; cl100k and Llama 3."""
_SNIFFED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTokenizer:
    """Encodes and decodes text, without special tokens."""

    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str]

    def count(self, text: str) -> int:
        """Number of tokens of a text."""
        return len(self.encode(text))


@dataclass(frozen=True, slots=True)
class CountedPrompts:
    """Texts of a source with their exact token counts; prompts of token ids are unchanged."""

    source: PromptSource
    tokenizer: LocalTokenizer
    fit: bool
    """Cut or extend each text to its requested number of tokens."""

    def prompts(self) -> Iterator[Prompt]:
        """Prompts with the number of tokens that they really have, also where the exact length cannot be reached."""
        for prompt in self.source.prompts():
            if prompt.token_ids is not None:
                yield prompt
                continue
            text, tokens = prompt.text, 0
            if self.fit:
                text, tokens = fitted(text, prompt.input_tokens, self.tokenizer)
            yield replace(prompt, text=text, input_tokens=tokens or self.tokenizer.count(text), counted=True)


def fitted(text: str, tokens: int, tokenizer: LocalTokenizer) -> tuple[str, int]:
    """Return the text cut or extended to a number of tokens, and the number reached."""
    ids = tokenizer.encode(text)
    for _ in range(_ROUNDS):
        if len(ids) == tokens:
            break
        text = tokenizer.decode(ids[:tokens]) if len(ids) > tokens else text + _FILLING * (tokens - len(ids))
        ids = tokenizer.encode(text)
    return text, len(ids)


def load_tokenizer(name: str) -> LocalTokenizer:
    """Load a tokenizer from a file, a folder, or the name of a tiktoken encoding; UsageError when that fails."""
    path = Path(name)
    if path.is_dir():
        files = [path / each for each in ("tokenizer.json", "tokenizer.model", "tiktoken.model")]
        path = next((each for each in files if each.is_file()), files[0])
    try:
        return _loaded(path, name)
    except UsageError:
        raise
    except ImportError as error:
        raise UsageError(f"--tokenizer {name} needs {error.name}: {_INSTALL}") from None
    except Exception as error:  # what these libraries raise has no common base; tokenizers' own is Exception itself
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"--tokenizer {name} cannot be loaded ({reason[:160]}): is it a tokenizer file?") from None


def _loaded(path: Path, name: str) -> LocalTokenizer:
    if not path.is_file():
        return _named_encoding(name)
    with path.open("rb") as file:
        beginning = file.read(_SNIFFED)
    if beginning.lstrip().startswith(b"{"):
        return _from_json(path)
    return _from_ranks(path) if _is_rank_line(beginning.split(b"\n")[0]) else _from_sentencepiece(path)


def _from_json(path: Path) -> LocalTokenizer:
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(path))
    found.no_truncation()
    found.no_padding()
    return LocalTokenizer(
        encode=lambda text: found.encode(text, add_special_tokens=False).ids,
        decode=lambda ids: str(found.decode(list(ids), skip_special_tokens=False)),
    )


def _from_sentencepiece(path: Path) -> LocalTokenizer:
    from sentencepiece import SentencePieceProcessor

    found = SentencePieceProcessor(model_file=str(path))
    return LocalTokenizer(encode=found.encode, decode=lambda ids: str(found.decode(list(ids))))


def _named_encoding(name: str) -> LocalTokenizer:
    """Return an encoding of tiktoken, from its cache or its download server."""
    if "/" in name or "." in name:
        raise UsageError(f"--tokenizer {name}: no such file: give a tokenizer.json, .tiktoken or SentencePiece file")
    import tiktoken

    if name not in tiktoken.list_encoding_names():
        known = ", ".join(sorted(tiktoken.list_encoding_names()))
        raise UsageError(f"--tokenizer {name}: neither a file nor an encoding of tiktoken ({known})")
    return _of_tiktoken(tiktoken.get_encoding(name))


def _is_rank_line(line: bytes) -> bool:
    token, _, rank = line.strip().partition(b" ")
    try:
        return bool(base64.b64decode(token, validate=True)) and rank.isdigit()
    except binascii.Error:
        return False


def _from_ranks(path: Path) -> LocalTokenizer:
    import tiktoken

    ranks = {
        base64.b64decode(token): int(rank) for token, rank in (line.split() for line in path.read_bytes().splitlines())
    }
    pattern = next((pattern for most, pattern in _PATTERNS if len(ranks) <= most), None)
    if pattern is None:
        raise UsageError(
            f"--tokenizer {path}: unknown pre-tokenization for {len(ranks):,} ranks: give the model's tokenizer.json"
        )
    return _of_tiktoken(tiktoken.Encoding(path.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}))


def _of_tiktoken(encoding: Any) -> LocalTokenizer:
    return LocalTokenizer(encode=encoding.encode_ordinary, decode=lambda ids: str(encoding.decode(list(ids))))
