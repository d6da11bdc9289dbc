"""Summaries with token counts that are estimated, disputed, or unknown for each chunk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servetop import api
from servetop.cli.main import main
from servetop.core.events import EngineSample, RequestRecord, TokenSource
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, Tick

RESULTS = Path(__file__).parents[2] / "corpus" / "results"
MakeRequest = Callable[..., RequestRecord]
Summarise = Callable[..., dict[str, Any]]
TICKS = [Tick(client=ClientTick(index=i, output_tokens=50, loop_lag=LogHistogram.of([0.001]))) for i in range(32)]


@pytest.mark.parametrize(
    ("source", "verdict", "expected"),
    [
        (TokenSource.USAGE, "ok", None),
        (TokenSource.TOKENIZER, "ok", None),
        (TokenSource.CHUNKS, "suspect", "tokens of 100% of requests are counted events: the server sends no usage"),
        (TokenSource.ESTIMATE, "suspect", "tokens of 100% of requests are counted events: the server sends no usage"),
        (
            TokenSource.DISPUTED,
            "suspect",
            "the usage of 100% of requests contradicts the stream or the tokens requested",
        ),
    ],
)
def test_the_verdict_depends_on_where_the_tokens_are_counted(
    summary_of: Summarise, make_request: MakeRequest, source: TokenSource, verdict: str, expected: str | None
) -> None:
    requests = [make_request(i, i * 0.1, token_source=source) for i in range(20)]
    trust = summary_of(*requests, ticks=TICKS)["trust"]
    assert (trust["token_source"], trust["verdict"]) == (source, verdict)
    assert trust["reasons"] == ([] if expected is None else [expected])


def test_an_imported_file_without_the_servers_count_is_not_said_to_show_what_the_server_sends(tmp_path: Path) -> None:
    path = tmp_path / "imported.servetop"
    assert main(["import", str(RESULTS / "genai_perf" / "profile_export.json"), "-o", str(path)]) == 0
    with api.open_recording(path) as recording:
        reasons = recording.summary().measured.trust.reasons
    assert list(reasons) == [
        "tokens of 100% of requests are counted events: the imported file has no count of the server"
    ]


def test_counted_events_that_the_engines_own_counter_confirms_are_trusted(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    requests = [make_request(i, i * 0.1, token_source=TokenSource.CHUNKS) for i in range(20)]
    counter = [
        EngineSample(scrape_start=at, scrape_end=at, generation_tokens_total=200.0 * at) for at in (0.5, 2.0, 3.5)
    ]
    trust = summary_of(*requests, ticks=TICKS, samples=counter)["trust"]
    assert (trust["token_source"], trust["verdict"]) == ("chunks", "ok")


def test_gaps_between_events_of_unknown_size_are_not_inter_token_latencies(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    known = [make_request(i, i * 0.1, tokens_at=[0.1, 0.2, 0.3]) for i in range(20)]
    unknown = [make_request(i + 50, i * 0.1, tokens_at=[0.1, 0.2, 0.3], output_tokens=9) for i in range(5)]
    summary = summary_of(*known, *unknown)
    assert (summary["mean_itl_ms"], summary["p99_itl_ms"], summary["mean_tpot_ms"]) == (None, None, None)
    assert summary["itl_reason"].startswith("the events of 5 of 25 requests contained several tokens each")
    assert summary["mean_ttft_ms"] == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [([1], "each response had one token"), ([4], "each response arrived in one event: it was not streamed")],
)
def test_responses_without_a_gap_between_tokens_have_no_inter_token_latency_and_say_why(
    summary_of: Summarise, make_request: MakeRequest, chunks: list[int], reason: str
) -> None:
    summary = summary_of(*(make_request(i, i * 0.1, tokens_at=[0.1], chunk_tokens=chunks) for i in range(9)))
    assert (summary["mean_itl_ms"], summary["itl_reason"]) == (None, reason)


def test_a_disputed_count_keeps_the_inter_token_latencies(summary_of: Summarise, make_request: MakeRequest) -> None:
    wrong = {"output_tokens": 9, "token_source": TokenSource.DISPUTED}
    summary = summary_of(*(make_request(i, i * 0.1, tokens_at=[0.1, 0.2, 0.3], **wrong) for i in range(9)))
    assert (summary["mean_itl_ms"], summary["itl_reason"]) == (pytest.approx(100.0), None)


def test_chunks_of_several_tokens_are_weighted_by_their_tokens(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    requests = [make_request(i, i * 0.1, tokens_at=[0.1, 0.128, 0.156], chunk_tokens=[4, 4, 4]) for i in range(9)]
    summary = summary_of(*requests)
    assert summary["mean_itl_ms"] == pytest.approx(7.0)
    assert (summary["mean_tpot_ms"], summary["itl_reason"]) == (pytest.approx(7.0), None)


@pytest.mark.parametrize(
    ("received", "required", "share", "verdict"),
    [
        (4, 200, 0.02, "suspect"),
        (190, 200, 0.95, "ok"),
        (200, 200, 1.0, "ok"),
        (4, None, None, "ok"),
        (9, 4, 1.0, "ok"),
    ],
)
def test_outputs_shorter_than_the_requests_demand_are_named(
    summary_of: Summarise, make_request: MakeRequest, received: int, required: int | None, share: float, verdict: str
) -> None:
    sizes = {"output_tokens": received, "required_tokens": required}
    trust = summary_of(*(make_request(i, i * 0.1, **sizes) for i in range(20)), ticks=TICKS)["trust"]
    assert (trust["output_share"], trust["verdict"]) == (share, verdict)
    expected = "outputs are 2% of what was requested (the server ignores ignore_eos)"
    assert trust["reasons"] == ([expected] if verdict == "suspect" else [])
