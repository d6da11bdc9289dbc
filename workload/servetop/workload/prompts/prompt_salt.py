"""Salts: prompts altered at their beginning, so that no prefix cache that saw them with another salt finds them.

A salt changes neither the length of a prompt nor which prompts share what: token ids and words are exchanged one for
one, and equal ones are exchanged for equal ones. vLLM's own field `cache_salt` would leave the prompts alone, but other
engines do not have it.
"""

from __future__ import annotations

import bisect
import dataclasses
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from servetop.core.interfaces.dialect import Prompt
from servetop.workload.prompts.ordinary_tokens import UNCHECKED_IDS
from servetop.workload.prompts.prompt_source import common_words

_TOKENS = 4
"""Token ids that are exchanged: fewer than a block, but enough to be unlike for any two salts."""
_WORDS, _PIECE = 8, 4
_WORD = re.compile(r"\S+")
_Prompt = TypeVar("_Prompt", bound=Prompt)


def salted(prompt: _Prompt, salt: int, token_ids: Sequence[int] = ()) -> _Prompt:
    """Return the prompt with other first tokens, of these in ascending order, or other first words of equal length."""
    shifts = random.Random(salt)
    if prompt.token_ids is not None:
        return dataclasses.replace(prompt, token_ids=_shifted(prompt.token_ids, shifts, token_ids or UNCHECKED_IDS))
    if prompt.messages:
        (role, text), *others = prompt.messages
        return dataclasses.replace(prompt, messages=((role, _reworded(text, shifts)), *others))
    return dataclasses.replace(prompt, text=_reworded(prompt.text, shifts))


def _shifted(ids: Sequence[int], shifts: random.Random, kinds: Sequence[int]) -> tuple[int, ...]:
    first = (
        kinds[(bisect.bisect_left(kinds, each) + shifts.randrange(1, len(kinds))) % len(kinds)]
        for each in ids[:_TOKENS]
    )
    return (*first, *ids[_TOKENS:])


def _reworded(text: str, shifts: random.Random) -> str:
    by_length = _words_by_length()
    return _WORD.sub(lambda match: _other_word(match[0], by_length, shifts), text, count=_WORDS)


def _other_word(word: str, by_length: Mapping[int, list[str]], shifts: random.Random) -> str:
    """Another common word for a common one; a longer text without spaces begins with several short ones."""
    if word in by_length.get(len(word), ()):
        return _exchanged(word, by_length[len(word)], shifts)
    pieces = [word[at : at + _PIECE] for at in range(0, min(len(word), _WORDS * _PIECE), _PIECE)]
    changed = (_exchanged(piece, by_length.get(len(piece), [piece]), shifts) for piece in pieces)
    return "".join(changed) + word[_WORDS * _PIECE :]


def _exchanged(piece: str, candidates: Sequence[str], shifts: random.Random) -> str:
    shift = shifts.randrange(1, 1 << 16)
    number = candidates.index(piece) if piece in candidates else sum(map(ord, piece))
    return candidates[(number + shift) % len(candidates)]


def _words_by_length() -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for word in common_words():
        found[len(word)].append(word)
    return dict(found)
