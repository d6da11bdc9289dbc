"""Ordinary tokens of a model, which random prompts of token ids consist of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from servetop.core.config import RANDOM, WorkloadConfig
from servetop.workload.datasets.files import shipped, whole_text

UNCHECKED_IDS = range(1_000, 10_000)
"""Token ids for a model whose tokenizer is unknown: published vocabularies have their special tokens outside of them.

Mistral's begin with 1,000 special tokens, Gemma's and BERT's with some hundred; most others have them at their ends,
and the smallest of all have 32,000 tokens.
"""

ORDINARY, UNCHECKED = "ordinary", "unchecked"
"""What random prompts of a run consist of, as its recording and summary name it."""
UNKNOWN_TOKENIZER = (
    f"prompts are random token ids from {UNCHECKED_IDS[0]:,} to {UNCHECKED_IDS[-1]:,}; whether all are ordinary tokens "
    "of the model is unknown, because the server has no /tokenize: give --tokenizer FILE, or --endpoint chat"
)
"""A warning of a run with unchecked token ids."""


def draws_token_ids(workload: WorkloadConfig) -> bool:
    """Whether prompts of a workload are random token ids, where the engine accepts them."""
    if workload.endpoint != "completions" or workload.conversational:
        return False
    if workload.dataset in RANDOM:
        return True
    from servetop.workload.datasets.catalogue import SHIPPED_TRACES, TRACES  # numpy: not for every start

    return workload.dataset in (*TRACES, *SHIPPED_TRACES)


def ordinary_text() -> str:
    """Return an English text of some thousand tokens; its tokens are ordinary ones in any vocabulary."""
    return whole_text(shipped("sonnet.txt.gz"))


def ordinary_ids(ids: Sequence[int]) -> tuple[int, ...]:
    """Return the distinct tokens of a text, ascending, without the tokenizer's special tokens at its ends."""
    counts = Counter(ids)
    around = {each for each in (*ids[:1], *ids[-1:]) if counts[each] == 1}
    return tuple(sorted(counts.keys() - around))
