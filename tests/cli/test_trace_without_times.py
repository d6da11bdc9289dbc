"""A trace that cannot set the times of its requests is not sent all at once, unless that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from tests.cli.test_config_file import config_of

LENGTHS = "input,output\n5,4\n6,4\n"
EQUAL_TIMES = "arrival_s,input,output\n3,5,4\n3,6,4\n"


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        (LENGTHS, [], "has lengths but no times: give --request-rate (inf sends all requests at once)"),
        (LENGTHS, ["--request-rate", "inf"], ""),
        (LENGTHS, ["--request-rate", "5"], ""),
        (LENGTHS, ["--max-concurrency", "2"], ""),
        (EQUAL_TIMES, [], "has the same time in each row: give --request-rate"),
        (EQUAL_TIMES, ["--request-rate", "inf"], ""),
        (EQUAL_TIMES, ["--request-rate", "5"], "but all are equal: add --arrivals poisson"),
        (EQUAL_TIMES, ["--request-rate", "5", "--arrivals", "poisson"], ""),
    ],
)
def test_a_trace_without_times_needs_a_rate(tmp_path: Path, text: str, options: list[str], error: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    words = ["--dataset-name", "plain", "--dataset-path", str(path), "--num-prompts", "4", *options]
    if not error:
        assert config_of(*words).stages[0].num_prompts == 4
        return
    with pytest.raises(UsageError) as refused:
        config_of(*words)
    assert error in str(refused.value)
