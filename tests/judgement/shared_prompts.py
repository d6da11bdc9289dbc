"""Prompts that several load generators send alike, so that a server counts the same tokens for each of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from servetop.simulator.server.tokens import CHARACTERS_PER_TOKEN, WORDS

_SEED = 7


def shared_prompts(count: int, *, tokens: int) -> tuple[str, ...]:
    """Return texts that begin differently, each of as many tokens as given by the simulator's count."""
    source = random.Random(_SEED)
    size = tokens * CHARACTERS_PER_TOKEN - 1
    texts = (f"{number} {' '.join(source.choices(WORDS, k=size))}" for number in range(count))
    return tuple(f"{text[:size]}." for text in texts)


def write_prompts(path: Path, prompts: Sequence[str], *, output_tokens: int, keys: tuple[str, str]) -> Path:
    """Write a JSON line for each prompt, with the keys by which a client reads it and its output tokens."""
    lines = (json.dumps({keys[0]: prompt, keys[1]: output_tokens}) for prompt in prompts)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_conversations(path: Path, prompts: Sequence[str], *, output_tokens: int) -> Path:
    """Write a conversation of ShareGPT for each prompt, whose answer is as many tokens of most tokenizers as given."""
    answer = " ".join("a" * output_tokens)
    lines = (
        json.dumps({"conversations": [{"from": "human", "value": prompt}, {"from": "gpt", "value": answer}]})
        for prompt in prompts
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
