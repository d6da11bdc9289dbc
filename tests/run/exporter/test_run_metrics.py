"""The metrics of a whole run: equal to its summary at the end, and never falling before."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families as plain

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.interfaces.run_source import EngineFacts
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.run.exporter.metric_registry import METRICS
from servetop.run.exporter.run_metrics import RunIdentity, RunMetrics
from servetop.run.outcome import RunPhase
from tests.run.exporter.recorded import Samples, falls, samples_of, transactions

IDENTITY = RunIdentity(recording="night", version="1.2.3", began_at=1700000000.5)
HOSTILE = 'a"b\\c\nd{e="f"}\x1b[31m\u202e'
CLEAN = 'a"b\\c d{e="f"}'


@pytest.fixture(scope="module")
def sample() -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        yield reader


@pytest.fixture(scope="module")
def summary(sample: RecordingReader) -> RunSummary:
    return run_summary(sample)


def metrics_of(reader: RecordingReader) -> RunMetrics:
    metrics = RunMetrics(reader.header.config, IDENTITY)
    assert reader.header.engine is not None
    metrics.set_engine(reader.header.engine)
    return metrics


@pytest.fixture(scope="module")
def pages(sample: RecordingReader) -> list[Samples]:
    """A page for every 37 ticks of the run, and the last one."""
    metrics, found = metrics_of(sample), []
    for number, transaction in enumerate(transactions(sample)):
        metrics.take(transaction)
        if number % 37 == 0:
            found.append(samples_of(metrics.text(openmetrics=True)))
    return [*found, samples_of(metrics.text(openmetrics=True))]


def value(page: Samples, name: str, **labels: str) -> float:
    return page[name, tuple(sorted(labels.items()))]


def test_counts_and_tokens_are_exactly_those_of_the_summary(pages: list[Samples], summary: RunSummary) -> None:
    last, requests = pages[-1], summary.measured.requests

    def ended(status: str) -> float:
        return value(last, "servetop_requests_total", status=status, warmup="false")

    statuses = ("ok", "error", "timeout", "cancelled", "truncated")
    expected = (requests.completed, requests.errors, requests.timeouts, requests.cancelled, requests.truncated)
    assert tuple(map(ended, statuses)) == expected
    assert requests.completed > 300
    tokens = {
        kind: value(last, "servetop_request_tokens_total", gen_ai_token_type=kind, warmup="false")
        for kind in ("input", "output")
    }
    assert tokens == {"input": requests.total_input_tokens, "output": requests.total_output_tokens}
    assert value(last, "servetop_offered_requests_total") == requests.num_prompts
    assert value(last, "servetop_sent_requests_total") == requests.num_prompts
    assert value(last, "servetop_judged_requests_total") == requests.completed
    assert requests.request_goodput is not None
    assert value(last, "servetop_good_requests_total") == pytest.approx(requests.request_goodput * requests.duration)


def test_histograms_have_the_count_and_the_sum_of_the_summary(pages: list[Samples], summary: RunSummary) -> None:
    last, requests = pages[-1], summary.measured.requests
    labels = {
        "gen_ai_operation_name": "text_completion", "gen_ai_provider_name": "sim", "gen_ai_request_model": "llama-2-7b",
    }  # fmt: skip
    for name, metric in (
        ("gen_ai_client_operation_duration_seconds", "e2el"),
        ("gen_ai_client_operation_time_to_first_chunk_seconds", "ttft"),
        ("servetop_time_per_output_token_seconds", "tpot"),
    ):
        count, total = value(last, f"{name}_count", **labels), value(last, f"{name}_sum", **labels)
        assert count == requests.completed
        assert total / count * 1000 == pytest.approx(requests.latencies[metric].mean, rel=1e-6)
    usage = {
        kind: value(last, "gen_ai_client_token_usage_sum", **labels, gen_ai_token_type=kind)
        for kind in ("input", "output")
    }
    assert usage == {"input": requests.total_input_tokens, "output": requests.total_output_tokens}


def test_no_counter_falls_and_no_bucket_has_more_than_the_next(pages: list[Samples]) -> None:
    assert len(pages) > 10
    for before, now in itertools.pairwise(pages):
        assert falls(before, now) == []
    for page in pages:
        counts: dict[tuple[str, tuple[tuple[str, str], ...]], list[float]] = {}
        for (name, labels), count in page.items():
            if name.endswith("_bucket"):
                rest = tuple(each for each in labels if each[0] != "le")
                counts.setdefault((name.removesuffix("_bucket"), rest), []).append(count)
        assert all(each == sorted(each) for each in counts.values())
        assert all(each[-1] == page[f"{name}_count", rest] for (name, rest), each in counts.items())


def test_the_verdict_and_the_trust_of_the_run_are_state_sets(pages: list[Samples]) -> None:
    seen: dict[str, set[str]] = {"servetop_verdict": set(), "servetop_trust": set()}
    for page in pages:
        for metric, states in seen.items():
            on = [dict(labels)[metric] for (name, labels), number in page.items() if name == metric and number]
            assert len(on) == 1
            states.update(on)
    assert "KV-bound" in seen["servetop_verdict"], "the sample is a run that is KV-bound for a time"
    assert "ok" in seen["servetop_trust"]


def test_both_formats_have_the_same_samples(sample: RecordingReader) -> None:
    metrics = metrics_of(sample)
    for transaction in list(transactions(sample))[:200]:
        metrics.take(transaction)
    of_plain = {
        (each.name, tuple(sorted(each.labels.items()))): each.value
        for family in plain(metrics.text(openmetrics=False))
        for each in family.samples
    }
    assert of_plain == samples_of(metrics.text(openmetrics=True))


def test_only_declared_metrics_are_served_with_their_labels(pages: list[Samples]) -> None:
    declared = {metric.name: set(metric.labels) for metric in METRICS}
    suffixes = ("_bucket", "_sum", "_count")
    for name, labels in pages[-1]:
        base = next((name.removesuffix(each) for each in suffixes if name.removesuffix(each) in declared), name)
        assert {key for key, _ in labels} - {"le"} == declared[base], name


def test_a_page_before_the_engine_is_known_has_the_run_and_its_phase() -> None:
    metrics = RunMetrics(RunConfig(engine=EngineConfig(model="tiny"), label="x"), IDENTITY)
    metrics.phase = lambda: RunPhase.BOOTING
    page = samples_of(metrics.text(openmetrics=True))
    assert value(page, "servetop_run_phase", servetop_run_phase="booting") == 1
    assert value(page, "servetop_run_start_time_seconds") == 1700000000.5
    assert value(page, "servetop_requests_total", status="ok", warmup="false") == 0
    assert not any(name.startswith("gen_ai") for name, _ in page)


@pytest.mark.parametrize("openmetrics", [False, True])
def test_names_from_outside_are_escaped(openmetrics: bool) -> None:
    metrics = RunMetrics(RunConfig(label=HOSTILE), dataclasses.replace(IDENTITY, recording=HOSTILE))
    metrics.set_engine(EngineFacts(name="vllm", title="vLLM", model=HOSTILE, version=HOSTILE, url="http://h:1/"))
    text = metrics.text(openmetrics=openmetrics)
    (line,) = [line for line in text.splitlines() if line.startswith("servetop_run_info")]
    families = plain(text) if not openmetrics else ()
    found = [dict(each.labels) for family in families for each in family.samples if each.name == "servetop_run_info"]
    if openmetrics:
        found = [dict(labels) for name, labels in samples_of(text) if name == "servetop_run_info"]
    assert [(each["model"], each["label"], each["recording"]) for each in found] == [(CLEAN,) * 3]
    assert line.isprintable()


def test_a_secret_in_a_label_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-0123456789abcdef")
    engine = EngineConfig(api_key_env="MY_KEY")
    metrics = RunMetrics(RunConfig(engine=engine, label="with sk-0123456789abcdef"), IDENTITY)
    assert "0123456789abcdef" not in metrics.text(openmetrics=True)


def test_a_watch_has_nothing_of_a_client(sample: RecordingReader) -> None:
    config = RunConfig(engine=EngineConfig(url="http://gpu7:8000"), watch=WatchConfig())
    metrics = RunMetrics(config, IDENTITY)
    metrics.set_engine(EngineFacts(name="vllm", title="vLLM", url="http://gpu7:8000"))
    for transaction in list(transactions(sample))[:100]:
        metrics.take(transaction)
    names = {name for name, _ in samples_of(metrics.text(openmetrics=True))}
    assert names == {
        "servetop_build_info", "servetop_run_info", "servetop_run_start_time_seconds", "servetop_run_phase",
        "servetop_verdict", "servetop_server_up", "servetop_server_requests_running",
        "servetop_server_requests_waiting", "servetop_server_kv_cache_usage_ratio",
    }  # fmt: skip
