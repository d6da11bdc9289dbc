"""servetop reads every response of the corpus right, however its bytes arrive."""

from __future__ import annotations

from random import Random

import pytest

from servetop.engines.dialects.dialect_registry import dialect_for
from tests.corpus.corpus import END, FIRST_AT, STEP, Case, Reading, load_cases, read

CASES = load_cases()
cases = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def block_of_first_token(reading: Reading) -> int | str | None:
    at = reading.record.first_token_at
    if at is None:
        return None
    return "end" if at == END else round((at - FIRST_AT) / STEP)


def itl_of(reading: Reading) -> str | None:
    if reading.record.chunk_times.size < 2:
        return None
    return "known" if reading.record.chunk_sizes_known else "unknown"


@cases
def test_a_response_is_read_as_its_reading_says(case: Case) -> None:
    reading = read(case, case.blocks)
    record = reading.record
    assert (str(record.status), case.reason in (record.error or "")) == (case.outcome, True), record.error
    assert "\n" not in (record.error or "")
    assert (reading.content, reading.reasoning) == (case.content, case.reasoning)
    assert record.output_tokens == case.output_tokens
    assert block_of_first_token(reading) == case.first_token
    if case.outcome == "ok":
        assert itl_of(reading) == case.itl


@cases
def test_the_reading_does_not_depend_on_how_the_bytes_arrive(case: Case) -> None:
    random, body = Random(case.name), case.body
    dialect = dialect_for(case.endpoint, model="m", continuous_usage=False)
    expected = read(case, case.blocks).result
    splits = [[body], [body[at : at + 1] for at in range(len(body))]]
    for _ in range(12):
        edges = sorted(random.randrange(len(body) + 1) for _ in range(random.randrange(1, 9)))
        splits.append([body[low:high] for low, high in zip([0, *edges], [*edges, len(body)], strict=True)])
    for pieces in splits:
        assert read(case, pieces).result == expected
        assert read(case, pieces, dialect=dialect).result == expected, "of a server whose events are known"
