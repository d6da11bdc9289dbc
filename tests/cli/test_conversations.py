"""Conversations from the command line, against the simulator with a prefix cache."""

import contextlib
import itertools
import json
from pathlib import Path

import pytest

from servetop.core.events import RequestRecord
from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop

pytestmark = pytest.mark.integration

THINK = 0.05


def turns_by_conversation(servetop: Servetop) -> list[list[RequestRecord]]:
    (file,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(file)) as reader:
        records = sorted(reader.requests(0.0, 1e9), key=lambda each: (each.conversation or 0, each.turn or 0))
    return [list(turns) for _, turns in itertools.groupby(records, key=lambda each: each.conversation)]


def test_turns_continue_from_the_responses_and_have_a_summary_each(servetop: Servetop) -> None:
    done = servetop(
        "--json", "--num-turns", "3", "--endpoint", "completions", "--input-len", "60", "--output-len", "20",
        "--max-concurrency", "4", "--think-time", f"{THINK}", "--num-prompts", "8", "--store-texts",
        "--", "--engine-profile", "vllm-current",
    )  # fmt: skip
    assert done.code in RAN, done.err
    talks = turns_by_conversation(servetop)
    assert [[each.turn for each in turns] for turns in talks] == [[1, 2, 3]] * 8
    assert [turns[0].id for turns in talks] == [turns[0].conversation for turns in talks]
    for before, after in (pair for turns in talks for pair in itertools.pairwise(turns)):
        assert before.output_text
        assert (after.prompt_text or "").startswith((before.prompt_text or "") + before.output_text + "\n\n")
        assert after.due == pytest.approx((before.done_at or 0.0) + THINK, abs=1e-5)
        assert (after.sent or 0.0) >= after.due
    figures = done.summary["turns"]
    assert [(each["turn"], each["requests"], each["completed"]) for each in figures] == [
        (1, 8, 8),
        (2, 8, 8),
        (3, 8, 8),
    ]
    for figure, turns in zip(figures, zip(*talks, strict=True), strict=True):
        waits = [(each.ttft or 0.0) * 1000 for each in turns]
        cached = sum(each.cached_tokens or 0 for each in turns)
        assert figure["mean_ttft_ms"] == pytest.approx(sum(waits) / 8, abs=0.01)
        assert figure["mean_prompt_tokens"] == pytest.approx(sum(each.prompt_tokens for each in turns) / 8)
        assert figure["cached_share"] == pytest.approx(cached / sum(each.prompt_tokens for each in turns))
    assert figures[0]["cached_share"] == 0.0
    assert figures[2]["cached_share"] > figures[1]["cached_share"] > 0.2
    assert done.summary["num_prompts"] == 24


def test_mt_bench_runs_over_chat_and_prints_a_table_of_turns(servetop: Servetop) -> None:
    done = servetop(
        "--headless", "--dataset-name", "mtbench", "--endpoint", "chat", "--request-rate", "40", "--num-prompts", "10",
        "--output-len", "5",
    )  # fmt: skip
    assert done.code in RAN, done.err
    assert "Turns (latency in ms)" in done.out
    (file,) = servetop.folder.glob("*.servetop")
    shown = servetop("summary", str(file), "--json")
    assert [each["requests"] for each in shown.summary["turns"]] == [10, 10]


def test_a_bad_row_of_a_conversation_dataset_is_an_error_or_skipped(servetop: Servetop, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    rows = [{"messages": [{"role": "user", "content": "One?"}]}, {"messages": "One?"}, {"turns": ["One?", "Two?"]}]
    file.write_text("\n".join(map(json.dumps, rows)))
    words = ("--json", "--dataset-name", "conversations", "--dataset-path", str(file), "--output-len", "3",
             "--num-prompts", "4", "--max-concurrency", "2")  # fmt: skip
    refused = servetop(*words)
    assert refused.code == 2
    assert refused.complaint.endswith(
        "line 2, column 'messages': expected a list of questions or messages, found 'One?': "
        "fix it, or add --skip-bad-rows"
    )
    done = servetop(*words, "--skip-bad-rows")
    assert done.code in RAN, done.err
    assert [(each["turn"], each["requests"]) for each in done.summary["turns"]] == [(1, 4), (2, 2)]


def test_a_run_without_conversations_has_no_table_of_turns(servetop: Servetop) -> None:
    done = servetop("--json", "--num-prompts", "2", "--max-concurrency", "2", "--output-len", "2")
    assert done.code in RAN, done.err
    assert "turns" not in done.summary
