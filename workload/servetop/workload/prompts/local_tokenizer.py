"""A tokenizer from a file on this machine: `tokenizer.json`, a rank file of tiktoken, a SentencePiece model.

The libraries are an extra; each is imported when a file of its kind is asked for, and by nothing else.
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
"""A text that was cut between two tokens may be read as one more or one less; then it is cut again."""
_FILLING = " the"
"""One token in the usual vocabularies."""
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = ((60_000, _GPT2), (130_000, _CL100K))
"""How text is split before it is merged, by the largest number of ranks: gpt2 and p50k; cl100k and Llama 3."""
_SNIFFED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTokenizer:
    """Text to ids and back, without special tokens."""

    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str]

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return len(self.encode(text))


@dataclass(frozen=True, slots=True)
class CountedPrompts:
    """Texts of a source with their exact number of tokens; those without a length of their own are cut to the wanted.

    Prompts of token ids pass as they are.
    """

    source: PromptSource
    tokenizer: LocalTokenizer
    fit: bool
    """Cut, or fill up, each text until it has as many tokens as it was to have."""

    def prompts(self) -> Iterator[Prompt]:
        """See PromptSource; a text that cannot be cut to the very length says what it has."""
        for prompt in self.source.prompts():
            if prompt.token_ids is not None:
                yield prompt
                continue
            text, tokens = prompt.text, 0
            if self.fit:
                text, tokens = fitted(text, prompt.input_tokens, self.tokenizer)
            yield replace(prompt, text=text, input_tokens=tokens or self.tokenizer.count(text), counted=True)


def fitted(text: str, tokens: int, tokenizer: LocalTokenizer) -> tuple[str, int]:
    """The text cut or filled up to so many tokens, and how many it has in the end."""
    ids = tokenizer.encode(text)
    for _ in range(_ROUNDS):
        if len(ids) == tokens:
            break
        text = tokenizer.decode(ids[:tokens]) if len(ids) > tokens else text + _FILLING * (tokens - len(ids))
        ids = tokenizer.encode(text)
    return text, len(ids)


def load_tokenizer(name: str) -> LocalTokenizer:
    """From a file, a folder that holds one, or the name of a tiktoken encoding; UsageError says why it cannot be."""
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
        words = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"--tokenizer {name} cannot be loaded ({words[:160]}): is it a tokenizer's file?") from None


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
    """One of tiktoken's own, from its cache or, where it has none yet, from where tiktoken gets it."""
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
            f"--tokenizer {path}: nobody says how {len(ranks):,} ranks split a text: give the model's tokenizer.json"
        )
    return _of_tiktoken(tiktoken.Encoding(path.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}))


def _of_tiktoken(encoding: Any) -> LocalTokenizer:
    return LocalTokenizer(encode=encoding.encode_ordinary, decode=lambda ids: str(encoding.decode(list(ids))))
