"""Requests for several models by weight."""

import itertools
from collections import Counter

import orjson
import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.workload.build import prompts_for
from servetop.workload.prompts.model_mix import check_served, parse_model_mix
from servetop.workload.validation import resolve_workload

MIX = {"base": 3.0, "adapter-a": 1.0, "never": 0.0}


def drawn(seed: int, **workload: object) -> list[str | None]:
    source = prompts_for(WorkloadConfig(**workload), (seed,))  # type: ignore[arg-type]
    return [prompt.model for prompt in itertools.islice(source.prompts(), 4000)]


def test_models_are_drawn_by_weight_and_seed() -> None:
    counts = Counter(drawn(1, model_mix=MIX))
    assert set(counts) == {"base", "adapter-a"}
    assert counts["base"] == pytest.approx(3000, abs=120)
    assert drawn(1, model_mix=MIX) == drawn(1, model_mix=MIX) != drawn(2, model_mix=MIX)
    assert set(drawn(1)) == {None}


def test_prompts_are_the_same_with_and_without_a_mix() -> None:
    mixed, plain = (prompts_for(WorkloadConfig(model_mix=mix), (1,)).prompts() for mix in (MIX, {}))
    assert [next(mixed).token_ids for _ in range(20)] == [next(plain).token_ids for _ in range(20)]


@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_each_body_names_the_drawn_model(endpoint: str) -> None:
    workload = WorkloadConfig(model_mix={"a/b": 1}, endpoint=endpoint)
    (prompt,) = itertools.islice(prompts_for(workload, (1,)).prompts(), 1)
    body = orjson.loads(dialect_for(endpoint, model="m", continuous_usage=True).body(prompt, workload))
    assert body["model"] == "a/b"


@pytest.mark.parametrize(
    ("text", "mix"),
    [
        ("base=3, adapter-a=1", {"base": 3.0, "adapter-a": 1.0}),
        ("a,b,c", {"a": 1.0, "b": 1.0, "c": 1.0}),
        ("org/x=y=0.5", {"org/x=y": 0.5}),
    ],
)
def test_a_mix_is_parsed_from_text(text: str, mix: dict[str, float]) -> None:
    assert parse_model_mix(text) == mix


@pytest.mark.parametrize("text", ["a=b", "a=", "=3", "a=-1", "a=nan", "a=inf", "", "a,,b", "a=0,b=0"])
def test_an_invalid_mix_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="--model-mix"):
        resolve_workload(WorkloadConfig(model_mix=parse_model_mix(text)))


def test_an_extra_body_must_not_name_a_model_besides_a_mix() -> None:
    with pytest.raises(UsageError, match="give one of the two"):
        resolve_workload(WorkloadConfig(model_mix=MIX, extra_body={"model": "x"}))


def test_an_unserved_model_is_rejected_with_the_served_ones() -> None:
    with pytest.raises(UsageError) as refusal:
        check_served({"base": 1.0, "lora": 1.0}, ["base", "sql"])
    assert str(refusal.value) == "--model-mix: the server does not serve lora: it serves base, sql"
    check_served({"base": 1.0}, ["base", "sql"])
    check_served({"base": 1.0}, [])
