"""The output tokens that a request demands of the server are read from its body."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.core.config import WorkloadConfig
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.required_output import RequiredOutput, required_output

TRANSFORMERS = "servetop.engines.dialects.transformers_api:TransformersChatDialect"
SGLANG = "servetop.engines.dialects.sglang_generate:SglangDialect"
MII = "servetop.engines.dialects.mii_generate:MiiDialect"
PLANNED, FREE = RequiredOutput(as_planned=True), RequiredOutput()


@pytest.mark.parametrize(
    ("location", "options", "expected"),
    [
        ("completions", {}, PLANNED),
        ("completions", {"ignore_eos": False}, FREE),
        ("chat", {"extra_body": {"ignore_eos": False}}, FREE),
        ("chat", {"extra_body": {"max_tokens": 7}}, RequiredOutput(fixed=7)),
        ("chat", {"ignore_eos": False, "extra_body": {"min_tokens": 5}}, RequiredOutput(fixed=5)),
        ("chat", {"ignore_eos": False, "extra_body": {"min_tokens": "5"}}, FREE),
        (SGLANG, {}, PLANNED),
        (MII, {}, PLANNED),
        (MII, {"ignore_eos": False}, FREE),
        (TRANSFORMERS, {}, FREE),
    ],
)
def test_ignore_eos_and_a_minimum_are_demands(location: str, options: dict[str, Any], expected: RequiredOutput) -> None:
    dialect = dialect_for(location, model="m", continuous_usage=False)
    assert required_output(dialect, WorkloadConfig(**options)) == expected


def test_the_demand_of_a_request() -> None:
    assert (PLANNED.tokens(40), FREE.tokens(40), RequiredOutput(fixed=5).tokens(40)) == (40, 0, 5)
