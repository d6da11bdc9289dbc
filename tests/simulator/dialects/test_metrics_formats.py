"""Each dialect's metrics page is well-formed Prometheus text and, if the real engine serves it, OpenMetrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from tests.simulator.dialects.served import served

openmetrics: Callable[[str], Iterable[Metric]] = openmetrics_families

PAGES = {"vllm": "/metrics", "sglang": "/metrics", "trtllm": "/prometheus/metrics", "tgi": "/metrics"}
REQUEST = {"prompt": "four words of text", "max_tokens": 6, "model": "tiny"}


@pytest.mark.parametrize("dialect", PAGES)
def test_each_family_has_one_help_and_one_type_and_contiguous_samples(dialect: str) -> None:
    with served(dialect) as client:
        client.post("/v1/completions", json=REQUEST).raise_for_status()
        page = client.get(PAGES[dialect]).text
    comments = [" ".join(line.split(" ", 3)[:3]) for line in page.splitlines() if line.startswith("#")]
    assert max(Counter(comments).values()) == 1
    families = [family.name for family in text_string_to_metric_families(page)]
    assert len(families) == len(set(families)) > 3


@pytest.mark.parametrize("dialect", ["vllm", "sglang", "trtllm"])
def test_openmetrics_is_served_on_request_with_the_same_samples(dialect: str) -> None:
    with served(dialect) as client:
        client.post("/v1/completions", json=REQUEST).raise_for_status()
        plain = client.get(PAGES[dialect])
        response = client.get(
            PAGES[dialect], headers={"Accept": "application/openmetrics-text; version=1.0.0,*/*;q=0.1"}
        )
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert response.text.endswith("# EOF\n")
    names = {sample.name for family in openmetrics(response.text) for sample in family.samples}
    known = {sample.name for family in text_string_to_metric_families(plain.text) for sample in family.samples}
    assert {name.removesuffix("_total") for name in names} == {name.removesuffix("_total") for name in known}
