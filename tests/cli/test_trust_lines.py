"""What a summary says under its tables."""

from typing import Any

import pytest

from servetop.cli.report.trust_lines import trust_lines

NOTHING_CAME = "no metrics page of the engine came while requests were in flight, for 1 s"


def summary(*stages: str | None, whole: str | None = None) -> dict[str, Any]:
    return {
        "trust": {"verdict": "suspect", "reasons": ["a", "b"], "token_source": "usage"},
        "server": {"peaks_reason": whole},
        "stages": [{"label": f"s{i}", "server": {"peaks_reason": each}} for i, each in enumerate(stages)],
    }


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        (summary(None, None), []),
        (summary(NOTHING_CAME, whole=NOTHING_CAME), [f"no peaks   {NOTHING_CAME}"]),
        (
            summary(None, NOTHING_CAME, NOTHING_CAME),
            ["no peaks   of s1, s2: no metrics page of the engine came while they ran"],
        ),
        (summary(None) | {"itl_reason": "why"}, ["no ITL     why"]),
    ],
    ids=["all known", "of the run", "of stages", "no ITL"],
)
def test_missing_figures_have_their_reason_under_the_verdict(told: dict[str, Any], lines: list[str]) -> None:
    assert trust_lines(told) == ["trust      suspect: a; b; tokens by usage", *lines]
