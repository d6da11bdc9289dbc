"""The simulator's tokenizer, an estimate for text and exact for token ids, and the text of its completions.

Text counts as one token per four characters, rounded up, the usual rule of thumb for English. `/tokenize` returns the
count that the usage reports.
"""

from __future__ import annotations

import random
import zlib

CHARACTERS_PER_TOKEN = 4
VOCABULARY = 32_000
EOS_MU = 5.435
EOS_SIGMA = 1.002
"""Log-normal fit of ShareGPT's output lengths in Llama tokens (vLLM's benchmark filter): median 229, mean 328."""

_TEXT = (
    " the of and to in that it was for on with as at by from one had not but what all were when we there can an "
    "your which their said if do will each about how up out them then she many some so these would other into has "
    "more her two like him see time could no make than first been its who now people my made over did down only way "
    "find use may water long little very after words called just where most know"
)
WORDS = tuple(_TEXT.split())


def count_tokens(text: str) -> int:
    """Count one token per four characters, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def token_ids(text: str) -> list[int]:
    """Return a stable id for each four characters."""
    pieces = (text[at : at + CHARACTERS_PER_TOKEN] for at in range(0, len(text), CHARACTERS_PER_TOKEN))
    return [zlib.crc32(piece.encode()) % VOCABULARY for piece in pieces]


def draw_output_length(source: random.Random, *, low: int, high: int) -> int:
    """Draw the output length at which the model emits EOS: log-normal, from `low` to `high`."""
    return min(max(round(source.lognormvariate(EOS_MU, EOS_SIGMA)), low, 1), high)


def block_hashes(prompt: str | list[int], block_size: int) -> tuple[int, ...]:
    """Return a chained hash per full block of the prompt; equal prefixes have equal hashes."""
    width = block_size if isinstance(prompt, list) else block_size * CHARACTERS_PER_TOKEN
    hashes: list[int] = []
    parent = 0
    for end in range(width, len(prompt) + 1, width):
        piece = prompt[end - width : end]
        parent = hash((parent, piece if isinstance(piece, str) else tuple(piece)))
        hashes.append(parent)
    return tuple(hashes)
