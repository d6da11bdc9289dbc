"""A base model and its adapters, from the command line: drawn by weight, recorded, and summarised separately."""

import contextlib
from collections import Counter

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop

pytestmark = pytest.mark.integration

LOAD = ("--num-prompts", "40", "--request-rate", "200", "--output-len", "3")
ADAPTERS = ("--", "--lora-modules", "sql", "chat=/adapters/chat")


def test_every_model_of_the_mix_has_its_own_figures(servetop: Servetop) -> None:
    done = servetop("--model-mix", "llama-2-7b=2,sql=1,chat=1", "--json", *LOAD, *ADAPTERS)
    assert done.code in RAN, done.err
    (file,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(file)) as reader:
        requested = Counter(request.model for request in reader.requests(0.0, 1e9))
        engine = reader.header.engine
    assert engine is not None
    assert engine.models == ("llama-2-7b", "sql", "chat")
    models = done.summary["models"]
    assert [(each["model"], each["weight"]) for each in models] == [("llama-2-7b", 2.0), ("sql", 1.0), ("chat", 1.0)]
    assert {each["model"]: each["completed"] for each in models} == requested
    assert sum(requested.values()) == done.summary["completed"] == 40
    assert all(each["p99_ttft_ms"] > 0 for each in models)
    table = servetop("summary", str(file)).out
    assert "Models (latency in ms)" in table


def test_a_model_that_is_not_served_ends_the_run_before_its_load(servetop: Servetop) -> None:
    refused = servetop("--model-mix", "llama-2-7b,law", "--json", *LOAD, *ADAPTERS)
    assert refused.code == 2
    assert refused.complaint == ("--model-mix: the server does not serve law: it serves llama-2-7b, sql, chat")


def test_without_a_mix_there_are_no_figures_by_model(servetop: Servetop) -> None:
    done = servetop("--json", *LOAD)
    assert done.code in RAN, done.err
    assert "models" not in done.summary
