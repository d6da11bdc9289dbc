"""Asked hit rates and planted caches, judged for a few of the runs of `make judge-cache`."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.judgement.cache_honesty import asked_runs, clean, contaminated, is_named, summarised


def test_the_engine_counts_the_rate_that_was_asked(tmp_path: Path) -> None:
    (run,) = itertools.islice(asked_runs([5], tmp_path, rates=[0.6]), 1)
    assert abs(run.error) < 1.0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_planted_cache_is_named_and_a_clean_run_is_not(tmp_path: Path, seed: int) -> None:
    run, held = contaminated(seed)
    summary = summarised(run, tmp_path)
    assert is_named(summary)
    assert summary.measured.server.prefix_cache_hit_rate == pytest.approx(held, abs=0.1)
    assert not is_named(summarised(clean(seed), tmp_path))
