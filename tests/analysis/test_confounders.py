"""All rules together: the most severe first, and consequences of another confounder left out."""

from __future__ import annotations

import dataclasses

import numpy as np

from servetop.analysis.confounding.conditions import CacheCounts, KvSize
from servetop.analysis.confounding.confounder import ConfounderKind
from servetop.analysis.confounding.confounders import confounders
from tests.analysis.measured_conditions import client, conditions, lengths

QUERIES = np.full(64, 1280.0)
COLD, WARM = (CacheCounts(hits=rate * QUERIES, queries=QUERIES, generated=QUERIES, capacity=1e6) for rate in (0.1, 0.9))


def test_equal_conditions_name_nothing() -> None:
    assert confounders(conditions(cache=COLD), conditions(cache=COLD)) == ()


def test_a_client_that_spoils_the_figures_comes_first() -> None:
    b = conditions(client=client(slip=0.5), kv=KvSize(blocks=500.0, block_size=16))
    assert [each.kind for each in confounders(conditions(), b)] == [ConfounderKind.CLIENT, ConfounderKind.KV_SIZE]


def test_a_hit_rate_that_other_prompts_explain_is_left_out() -> None:
    warm = conditions(cache=WARM)
    assert [each.kind for each in confounders(conditions(cache=COLD), warm)] == [ConfounderKind.CACHE]
    shorter = dataclasses.replace(warm, lengths=lengths([64] * 400))
    assert [each.kind for each in confounders(conditions(cache=COLD), shorter)] == [ConfounderKind.LENGTHS]
