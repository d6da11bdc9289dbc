"""The lines below the tables of a summary."""

from dataclasses import replace

import pytest

from servetop.analysis.summary.summary_types import RunSummary
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
            ["no peaks   of s1, s2: no scrape of the engine's metrics while they ran"],
        ),
        (summary(None, itl_reason="why"), ["no ITL     why"]),
        (summary(None, trust=LIMITED), ["not judged sent / offered 70.0 %: held back by limit 13"]),
    ],
    ids=["all known", "of the run", "of stages", "no ITL", "exempt"],
)
def test_missing_figures_have_their_reason_under_the_verdict(summary: RunSummary, lines: list[str]) -> None:
    assert trust_lines(summary) == ["trust      suspect: a; b; tokens by usage", *lines]
