"""The figures of a recorded load, and the consequences of what it lacks."""

import pytest

from servetop.workload.shape.recorded_load import RecordedLoad, ShapedRequest, SourceFacts
from servetop.workload.shape.shape_report import shape_report, shared_prefix


def request(at: float, *, tokens: int = 64, blocks: tuple[int, ...] = (), session: int | None = None) -> ShapedRequest:
    return ShapedRequest(at=at, input_tokens=tokens, output_tokens=10, blocks=blocks, session=session)


def load(*requests: ShapedRequest, **counts: int) -> RecordedLoad:
    facts = [SourceFacts(number=1, format="json", requests=len(requests))]
    return RecordedLoad(block_tokens=32, requests=list(requests), sources=facts, **counts)


def test_rates_and_gaps_of_a_regular_load() -> None:
    found = shape_report(load(*(request(float(at)) for at in range(121))), output_len=1)
    assert (found.requests, found.seconds, found.mean_rate, found.peak_rate) == (121, 120.0, 1.0, 1.0)
    assert found.gap_cv == pytest.approx(0.0)


def test_bursts_show_in_the_peak_and_in_the_gaps() -> None:
    times = [*(float(at) for at in range(0, 180, 10)), *(60 + part / 10 for part in range(100))]
    found = shape_report(load(*(request(at) for at in sorted(times))), output_len=1)
    assert found.peak_rate == pytest.approx(106 / 60)
    assert found.gap_cv is not None
    assert found.gap_cv > 2


def test_requests_at_once_and_short_loads_have_no_rates() -> None:
    found = shape_report(load(request(0.0), request(0.0)), output_len=1)
    assert (found.mean_rate, found.peak_rate, found.gap_cv) == (None, None, None)


def test_shared_prefixes_end_at_the_first_new_block() -> None:
    requests = [request(0.0, blocks=(1, 2)), request(1.0, blocks=(1, 3)), request(2.0, tokens=50, blocks=(1, 3))]
    assert shared_prefix(requests, 32) == (0 + 32 + 50) / (64 + 64 + 50)
    assert shared_prefix([request(0.0)], 32) is None


def test_sessions_and_turns_are_counted() -> None:
    found = shape_report(load(*(request(float(at), session=at % 3 // 2) for at in range(9))), output_len=1)
    assert (found.sessions, found.turns_mean, found.turns_max) == (2, 4.5, 6)


def test_each_missing_value_has_its_consequence() -> None:
    counts = {"assumed_outputs": 2, "left_out_inputs": 3, "estimated_inputs": 4, "without_output": 5, "spread": 6}
    missing = shape_report(load(request(0.0), **counts), output_len=99).missing
    assert {each.requests: each.what for each in missing if each.requests > 1} == {
        2: "output lengths", 3: "prompt lengths", 4: "prompt lengths", 5: "outputs", 6: "exact times",
    }  # fmt: skip
    assert any("99 tokens are assumed" in each.consequence for each in missing)
    assert [each.what for each in missing if each.requests == 1] == ["prompts", "sessions"]
    whole = load(request(0.0, blocks=(1, 2), session=1))
    assert shape_report(whole, output_len=1).missing == ()
