"""The sentence that says what limited a watched server."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.analysis.summary.watch_types import WatchedFigures, WatchedLimit
from servetop.analysis.summary.watched_figures import REQUESTS_WAIT, watch_headline

UNKNOWN: dict[str, Any] = dict.fromkeys(
    (
        "requests", "request_throughput", "output_throughput", "prompt_throughput", "mean_ttft_ms", "mean_tpot_ms",
        "mean_e2el_ms", "mean_queue_ms", "requests_ended", "requests_failed", "error_rate",
    )
)  # fmt: skip
KV = WatchedLimit(name="KV-bound", seconds=72.0, onset=10.0)
QUEUE = WatchedLimit(name=REQUESTS_WAIT, seconds=8.0, onset=100.0)


@pytest.mark.parametrize(
    ("limits", "silent", "headline"),
    [
        ((), 0.0, "watched for 5:00: no limit was reached"),
        ((KV,), 0.0, "KV-bound for 1:12 of 5:00"),
        ((KV, QUEUE), 10.0, "KV-bound for 1:12, requests wait for 0:08, without metrics for 0:10 of 5:00"),
    ],
)
def test_the_headline_names_each_limit_and_its_duration(
    limits: tuple[WatchedLimit, ...], silent: float, headline: str
) -> None:
    figures = WatchedFigures(seconds=300.0, seconds_without_metrics=silent, limits=limits, **UNKNOWN)
    assert watch_headline(figures) == headline


def test_a_server_whose_metrics_are_unknown_is_not_judged() -> None:
    figures = WatchedFigures(seconds=300.0, seconds_without_metrics=60.0, limits=(), judged=False, **UNKNOWN)
    assert watch_headline(figures) == (
        "answered for 4:00 of 5:00: without metrics that servetop knows limits are not judged"
    )


def test_a_server_without_metrics_has_no_figures() -> None:
    assert watch_headline(None) == "no metrics were read"
