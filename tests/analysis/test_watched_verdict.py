"""The verdict of one time of a watched server: only what its own metrics show."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.verdict_now import verdict_now
from servetop.analysis.engine_gauges import kv_usage
from servetop.analysis.live_stats import Rates, Totals
from servetop.analysis.series.page_rates import watched_stale_after
from servetop.core.events import EngineSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import LoadGauges
from tests.analysis.test_verdict_now import SAMPLE, episode, stats_of

FACTS = EngineFacts(name="vllm", title="vLLM", max_num_seqs=64)
RATES = Rates(offered=0.0, sent=0.0, completed=0.0, failed=0.0, output_tokens=0.0, preemptions=0.0)
CLIENT = re.compile(r"req/s|in flight|done|sent|client|press|rate|load")


def line_of(sample: EngineSample | None = SAMPLE, *, stats: dict[str, Any] | None = None, **changes: Any) -> str:
    found = replace(stats_of(RATES, engine=sample, load=LoadGauges(), totals=Totals(preemptions=0.0)), **(stats or {}))
    given: dict[str, Any] = {"facts": FACTS, "kv_peak": kv_usage(sample), "watched": True}
    return verdict_now(Moment(stats=found, **given | changes)).line


QUEUED = replace(SAMPLE, running=64, waiting=31, kv_usage=0.4)
QUEUE = episode(EpisodeKind.QUEUE)


@pytest.mark.parametrize(
    ("sample", "changes", "line"),
    [
        (None, {"facts": None}, "starting: attaching to the server"),
        (EngineSample(scrape_start=59.7, scrape_end=59.8), {},
         "not judged: the server answers, and has no metrics by which servetop knows its limits"),
        (SAMPLE, {}, "serving: 80 running, nothing waits, KV 50.0 %"),
        (replace(SAMPLE, running=0, kv_usage=0.0), {}, "idle"),
        (replace(SAMPLE, waiting=None, kv_usage=None), {}, "serving: 80 running"),
        (replace(SAMPLE, scrape_end=48.0), {}, "no metrics: since 0:48"),
        (None, {}, "no metrics"),
        (QUEUED, {"episodes": (QUEUE,), "limit": Limit.UNKNOWN},
         "requests wait: 31 waiting, 64 running, KV 40.0 %"),
        (replace(QUEUED, running=None), {"episodes": (QUEUE,), "limit": Limit.UNKNOWN},
         "requests wait: 31 waiting, KV 40.0 %, cause unknown without the engine's running count"),
        (QUEUED, {"episodes": (QUEUE, episode(EpisodeKind.BATCH, batch=64.0)), "limit": Limit.BATCH},
         "batch-bound: running 64 of 64, 31 waiting, KV only 40.0 % → raise max_num_seqs"),
        (replace(QUEUED, kv_usage=0.9), {"episodes": (episode(EpisodeKind.BATCH, batch=64.0),), "limit": Limit.BATCH},
         "batch-bound: running 64 of 64, 31 waiting, KV 90.0 % → more replicas or KV memory: a larger batch would soon "
         "fill the KV blocks"),
        (replace(QUEUED, kv_usage=0.997), {"episodes": (episode(EpisodeKind.KV), QUEUE), "limit": Limit.KV},
         "KV-bound: up to 99.7 % of blocks, 31 waiting → more KV memory, or shorter requests"),
        (SAMPLE, {"episodes": (episode(EpisodeKind.THROTTLED),)}, "serving: 80 running, nothing waits, KV 50.0 %"),
        (replace(SAMPLE, running=None, waiting=None), {},
         "unclear: the engine exports neither its queue nor its running sequences"),
    ],
)  # fmt: skip
def test_a_watched_server_is_judged_by_its_own_metrics(
    sample: EngineSample | None, changes: dict[str, Any], line: str
) -> None:
    found = line_of(sample, **changes)
    assert found == line
    assert CLIENT.search(found) is None


def test_the_zeros_of_the_missing_client_are_no_evidence() -> None:
    assert line_of(replace(SAMPLE, waiting=5)) == "serving: 80 running, 5 waiting, KV 50.0 %"
    assert not math.isnan(RATES.completed), "an idle client's rates are 0"


def test_the_only_sample_of_a_source_counts_as_long_as_it_is_repeated() -> None:
    old = replace(SAMPLE, scrape_end=20.0)
    assert line_of(old, stats={"read_at": 60.0}) == "serving: 80 running, nothing waits, KV 50.0 %"
    assert line_of(old, stats={"read_at": 56.0}) == "no metrics: since 0:20"


def test_a_source_with_rare_samples_is_named_as_such() -> None:
    old, rare = replace(SAMPLE, scrape_end=10.0), {"read_at": 60.0, "sample_interval": 60.0}
    assert line_of(old, stats=rare) == "serving: 80 running, nothing waits, KV 50.0 %, metrics every 60 s"
    assert line_of(replace(old, running=0, kv_usage=0.0), stats=rare) == "idle: metrics every 60 s"
    assert line_of(replace(SAMPLE, scrape_end=-70.0), stats=rare) == "no metrics: since 0:00"


OVER = replace(SAMPLE, running=0, waiting=0, kv_usage=0.0)
FULL = episode(EpisodeKind.BATCH, batch=64.0)


@pytest.mark.parametrize(
    ("sample", "changes", "line"),
    [
        (OVER, {"episodes": (QUEUE, FULL), "limit": Limit.BATCH}, "idle"),
        (replace(OVER, running=3), {"episodes": (QUEUE, FULL), "limit": Limit.BATCH},
         "serving: 3 running, nothing waits, KV 0.0 %"),
        (replace(OVER, running=64), {"episodes": (FULL,), "limit": Limit.BATCH},
         "batch-bound: running 64 of 64, 0 waiting, KV only 0.0 % → raise max_num_seqs"),
        (OVER, {"episodes": (QUEUE,), "limit": Limit.UNKNOWN}, "idle"),
        (OVER, {"episodes": (QUEUE, episode(EpisodeKind.KV)), "limit": Limit.KV}, "idle"),
    ],
)  # fmt: skip
def test_an_overload_that_is_over_is_not_the_state_of_now(
    sample: EngineSample, changes: dict[str, Any], line: str
) -> None:
    assert line_of(sample, **changes) == line


@pytest.mark.parametrize(
    ("interval", "age"), [(0.25, 1.5), (0.6, 1.8), (1.0, 3.0), (1.75, 3.75), (15.0, 30.0), (60.0, 120.0)]
)
def test_one_sample_of_a_watched_server_may_be_late(interval: float, age: float) -> None:
    assert float(watched_stale_after(interval)) == pytest.approx(age)
