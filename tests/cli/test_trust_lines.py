"""The lines below the tables of a summary."""

from dataclasses import replace

import pytest

from servetop.analysis.summary.summary_types import RunSummary
from servetop.analysis.summary.trust_types import EngineTimesSummary
from servetop.cli.report.trust_lines import trust_lines
from tests.cli.summaries import TRUST, run, stage

NO_SCRAPE = "the engine's metrics were not scraped while requests were in flight, for 1 s"
SUSPECT = replace(TRUST, verdict="suspect", reasons=("a", "b"), token_source="usage")
LIMITED = replace(SUSPECT, sent_rate=7.0, offered_rate=10.0, sent_exemption="held back by limit 13")


def summary(*stages: str | None, **fields: object) -> RunSummary:
    return run(*(stage(f"s{i}", peaks_reason=each) for i, each in enumerate(stages)), **{"trust": SUSPECT} | fields)


@pytest.mark.parametrize(
    ("summary", "lines"),
    [
        (summary(None, None), []),
        (summary(NO_SCRAPE, peaks_reason=NO_SCRAPE), [f"no peaks   {NO_SCRAPE}"]),
        (
            summary(None, NO_SCRAPE, NO_SCRAPE),
            ["no peaks   of s1, s2: no page of the engine's metrics describes their load"],
        ),
        (summary(None, itl_reason="why"), ["no ITL     why"]),
        (summary(None, trust=LIMITED), ["not judged sent / offered 70.0 %: held back by limit 13"]),
    ],
    ids=["all known", "of the run", "of stages", "no ITL", "exempt"],
)
def test_missing_figures_have_their_reason_under_the_verdict(summary: RunSummary, lines: list[str]) -> None:
    assert trust_lines(summary) == ["trust      suspect: a; b; tokens by usage", *lines]


@pytest.mark.parametrize(
    ("compared", "text"),
    [
        (("slip", "sent rate"), "slip and sent rate within limits; nothing of the engine was compared"),
        (("slip", "tokens"), "slip within limits; engine agrees in tokens"),
        (
            ("slip", "loop lag", "requests", "tokens", "TTFT"),
            "slip and loop lag within limits; engine agrees in requests, tokens and TTFT",
        ),
        ((), "nothing of the client was compared; nothing of the engine was compared"),
    ],
)
def test_a_verdict_without_reasons_names_what_was_compared(compared: tuple[str, ...], text: str) -> None:
    assert trust_lines(run(trust=replace(TRUST, compared=compared))) == [f"trust      ok: {text}"]


def test_the_engines_own_times_are_beside_the_clients() -> None:
    times = EngineTimesSummary(
        engine_mean_ttft_ms=7.31, ttft_beyond_engine_ms=38.7, engine_mean_e2el_ms=3010.4, e2el_beyond_engine_ms=-0.4
    )
    assert trust_lines(run(trust=replace(SUSPECT, engine_times=times)))[1:] == [
        "engine     mean TTFT 7.3 ms (client +38.7), E2EL 3,010 ms (client -0.4): network and HTTP server"
    ]


def test_advice_for_the_senders_has_a_line() -> None:
    assert trust_lines(run(trust=replace(SUSPECT, advice="do this")))[1:] == ["senders    do this"]
