"""The dashboard on a run that goes on and on: old ticks leave its memory, and are read again where one looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from servetop.core.errors import RecordingError
from servetop.tui.app import DashboardApp
from servetop.tui.playhead import Playhead
from servetop.tui.run_so_far import Moment, RunSoFar, View
from tests.tui import canned

END = 120.0


def followed(*, keep: int | None) -> RunSoFar:
    """The canned run, taken in second by second; `keep` ticks stay in memory, None: all."""
    run = canned.growing(0.0)
    options: dict[str, Any] = {} if keep is None else {"read": run.past_ticks, "keep": keep}
    so_far = RunSoFar(run.header, **options)
    for second in range(1, round(END) + 1):
        run.now = float(second)
        so_far.fold(run.poll())
    return so_far


def figures(moment: Moment) -> dict[str, Any]:
    stages = [(each.output_rate, each.preemptions, *each.histograms.values()) for each in moment.per_stage()]
    return {
        "heat": list(moment.heat),
        "stages": stages,
        "steady": dict(moment.steady),
        "causes": moment.causes,
        "overview": moment.overview,
        "latencies": dict(moment.stats.series.latencies),
        "trust": moment.stats.trust,
        "gpus": moment.stats.gpus,
        "ttft": moment.stats.ttft,
    }


@pytest.mark.parametrize("at", [20.0, 61.3, END])
@pytest.mark.parametrize("span", [30.0, 0.0])
def test_every_instant_looks_as_if_all_ticks_were_still_there(at: float, span: float) -> None:
    whole, short = followed(keep=None), followed(keep=100)
    view = View(playhead=Playhead(at=at), span=span)
    assert short.history.ticks.away > 300
    np.testing.assert_equal(figures(short.at(view, live=True)), figures(whole.at(view, live=True)))


async def test_a_past_that_cannot_be_read_again_is_told_and_ends_nothing(dashboard: Any) -> None:
    run = canned.growing(110.0)
    app: DashboardApp = dashboard(run)

    def fails(first: int, last: int) -> Any:
        raise RecordingError("cannot read run.servetop: is the disk all right?")

    async with app.run_test(size=(160, 48)) as pilot:
        app._run.history.put_away(keep=100)
        run.past_ticks = fails  # type: ignore[method-assign]
        app._look(playhead=replace(app._view.playhead, at=30.0, playing=False))
        await pilot.pause()
        assert "is the disk all right" in app._view.message
        assert app._run.at(app._view, live=True).stats.totals.sent > 0
