"""The ideal hit rate of recorded runs beside what a cache of blocks finds in the prompts that the run sends."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.prefix_cache.cache_notes import SOURCE, reset_note
from servetop.analysis.summary.summary_json import summary_json
from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.events import EngineSample, Note, RequestRecord, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from servetop.workload.build import EngineTraits, prompts_for
from servetop.workload.warming_prompts import warming_prompts
from tests.recordings.rows import sample, stage

MakeRequest = Callable[..., RequestRecord]
BLOCK = 16
FACTS = EngineFacts(name="vllm", title="vLLM", block_size=BLOCK)


def found_by_a_cache(prompts: Sequence[tuple[int, ...]], cached: set[tuple[int, ...]]) -> int:
    """Tokens that an infinite cache finds; it then has these prompts too."""
    total = 0
    for each in prompts:
        ends = range(BLOCK, len(each), BLOCK)
        total += next((end - BLOCK for end in ends if each[:end] not in cached), ends[-1] if ends else 0)
        cached |= {each[:end] for end in range(BLOCK, len(each) + 1, BLOCK)}
    return total


def summarised(
    path: Path, header: RunHeader, requests: Sequence[RequestRecord], stages: Sequence[StageChange], **parts: Any
) -> dict[str, Any]:
    recorder = Recorder.create(path, dataclasses.replace(header, engine=FACTS))
    recorder.commit(TickTransaction(tick=None, requests=requests, stages=stages, **parts))
    recorder.close(RunEnd(at=100.0, exit_code=0, reason=""))
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return summary_json(run_summary(reader))


@pytest.mark.parametrize("prefix_cache", ["as-is", "cold", "warm"])
@pytest.mark.parametrize("workload", [{"prefix_len": 70, "num_prefixes": 3}, {"dataset": "prefix_repetition"}, {}])
def test_the_ideal_of_each_cell_is_what_an_infinite_cache_would_find(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path, prefix_cache: str, workload: dict[str, Any]
) -> None:
    config = RunConfig(
        workload=WorkloadConfig(input_len=50, range_ratio=0.5, **workload),
        seed=4,
        prefix_cache=prefix_cache,
        drain_at_stages=True,
    )
    source = prompts_for(config.workload, (config.seed, 0)).prompts()
    prompts = [prompt.token_ids or () for prompt in itertools.islice(source, 60)]
    requests = [
        make_request(number, float(number), prompt_tokens=len(prompt), stage=number // 20)
        for number, prompt in enumerate(prompts)
    ]
    changes = [stage(0, 0.0, warmup=True), stage(1, 20.0), stage(2, 40.0)]
    summary = summarised(tmp_path / "r", dataclasses.replace(header, config=config), requests, changes)
    known: set[tuple[int, ...]] = set()
    warm = warming_prompts(config.workload, (config.seed, 0), engine=EngineTraits()) if prefix_cache == "warm" else []
    found_by_a_cache([prompt.token_ids or () for prompt in warm], known)
    found = []
    for cell in (prompts[:20], prompts[20:40], prompts[40:]):
        found.append(found_by_a_cache(cell, set() if prefix_cache == "cold" else known))
    rates = [
        count / sum(map(len, prompts[start : start + 20])) for count, start in zip(found, (0, 20, 40), strict=True)
    ]
    ideal = [each["server"]["prefix_cache_ideal_hit_rate"] for each in summary["stages"]]
    assert ideal == pytest.approx(rates[1:], abs=0.004)
    whole = sum(found[1:]) / sum(map(len, prompts[20:]))
    assert summary["server"]["prefix_cache_ideal_hit_rate"] == pytest.approx(whole, abs=0.004)


def requests_of(make_request: MakeRequest, count: int, **fields: Any) -> list[RequestRecord]:
    return [make_request(number, 10.0 + number, prompt_tokens=100, **fields) for number in range(count)]


def counted(hits: float, *, before: float = 0.0) -> list[EngineSample]:
    """Scrapes around a load of which the engine found `hits` of 3,000 tokens, and `before` of 1,000 at second 9."""
    at, counters = (5.0, 9.0, 40.0), [(0.0, 0.0), (before, 1000.0), (before + hits, 4000.0)]
    return [
        sample(time, prefix_cache_hits_total=found, prefix_cache_queries_total=queries)
        for time, (found, queries) in zip(at, counters, strict=True)
    ]


@pytest.mark.parametrize("reasons", [0, 1])
@pytest.mark.parametrize(
    ("endpoint", "hits"), [("", 450.0), ("completions", 450.0), ("chat", 2200.0), ("responses", 2200.0)]
)
def test_a_warm_cache_is_a_reason_to_distrust_the_run_at_every_endpoint(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path, endpoint: str, hits: float, reasons: int
) -> None:
    config = RunConfig(workload=WorkloadConfig(input_len=100, endpoint=endpoint))
    summary = summarised(
        tmp_path / "r",
        dataclasses.replace(header, config=config),
        requests_of(make_request, 30),
        [stage(0, 9.5)],
        engine_samples=counted(hits * reasons)[1:],
    )
    assert len(summary["trust"]["reasons"]) == reasons


@pytest.mark.parametrize(("hits", "reasons"), [(0.0, 0), (40.0, 0), (2800.0, 1)])
def test_hits_that_random_prompts_cannot_have_are_a_reason_to_distrust_the_run(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path, hits: float, reasons: int
) -> None:
    summary = summarised(
        tmp_path / "r",
        header,
        requests_of(make_request, 30),
        [stage(0, 9.5)],
        engine_samples=counted(hits)[1:],
    )
    for part in (summary["stages"][0], summary):
        assert len(part["trust"]["reasons"]) == reasons
        assert all(
            "explains at most 0.00: the cache held prompts of an earlier run" in each
            for each in part["trust"]["reasons"]
        )
    assert summary["prefix_cache"] == "as-is"


def test_what_was_done_to_the_cache_before_a_cell_counts_in_no_total(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path
) -> None:
    config = RunConfig(
        workload=WorkloadConfig(input_len=100, cache_hit_rate=0.6), prefix_cache="warm", drain_at_stages=True
    )
    notes = [Note(at=7.0, severity=Severity.INFO, source=SOURCE, text=reset_note("/reset_prefix_cache"))]
    summary = summarised(
        tmp_path / "r",
        dataclasses.replace(header, config=config),
        requests_of(make_request, 30),
        [stage(0, 7.0, rate=None), stage(0, 9.5)],
        engine_samples=counted(1800.0, before=500.0),
        notes=notes,
    )
    assert summary["server"]["prefix_cache_queries"] == 3000
    assert summary["server"]["prefix_cache_hit_rate"] == summary["server"]["prefix_cache_ideal_hit_rate"] == 0.6
    assert (summary["prefix_cache"], summary["trust"]["reasons"]) == ("warm, by reset", [])
    assert [each["start"] for each in summary["stages"]] == [9.5]


def test_a_turn_of_a_conversation_finds_the_turns_before_it(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path
) -> None:
    config = RunConfig(workload=WorkloadConfig(num_turns="2"))
    turns = [
        make_request(0, 1.0, prompt_tokens=40, output_tokens=25, conversation=0, turn=1),
        make_request(1, 1.0, prompt_tokens=30, output_tokens=9, conversation=1, turn=1),
        make_request(2, 2.0, prompt_tokens=90, output_tokens=9, conversation=0, turn=2),
    ]
    summary = summarised(tmp_path / "r", dataclasses.replace(header, config=config), turns, [stage(0, 0.0)])
    assert summary["server"]["prefix_cache_ideal_hit_rate"] == pytest.approx(64 / 160)


@pytest.mark.parametrize("workload", [{"n": 2}, {"dataset": "sharegpt"}, {"model_mix": {"a": 1.0}}])
def test_the_ideal_of_prompts_that_are_not_known_is_unknown(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path, workload: dict[str, Any]
) -> None:
    config = RunConfig(workload=WorkloadConfig(**workload))
    summary = summarised(
        tmp_path / "r", dataclasses.replace(header, config=config), requests_of(make_request, 3), [stage(0, 0.0)]
    )
    assert summary["server"]["prefix_cache_ideal_hit_rate"] is None


def test_an_engine_without_such_counters_is_judged_by_its_responses(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path
) -> None:
    summary = summarised(tmp_path / "r", header, requests_of(make_request, 30, cached_tokens=90), [stage(0, 9.5)])
    (reason,) = summary["trust"]["reasons"]
    assert reason.startswith("prefix cache hit rate 0.90, but this workload explains at most 0.00")
    assert summary["server"]["prefix_cache_hit_rate"] is None


def test_first_uses_before_the_first_scrape_or_of_other_servers_are_no_earlier_run(
    header: RunHeader, make_request: MakeRequest, tmp_path: Path
) -> None:
    config = RunConfig(workload=WorkloadConfig(input_len=4, prefix_len=96, num_prefixes=6), seed=4)
    for name, counters, named in (
        ("all seen", [(0.0, 0.0), (30 * 96.0, 3000.0)], True),
        ("first uses not seen", [(0.0, 600.0), (24 * 96.0, 3000.0)], False),
    ):
        scrapes = [
            sample(at, prefix_cache_hits_total=hits, prefix_cache_queries_total=queries)
            for at, (hits, queries) in zip((9.0, 60.0), counters, strict=True)
        ]
        summary = summarised(
            tmp_path / name,
            dataclasses.replace(header, config=config),
            requests_of(make_request, 30),
            [stage(0, 9.5)],
            engine_samples=scrapes,
        )
        assert bool(summary["trust"]["reasons"]) is named
