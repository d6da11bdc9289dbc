"""The shipped recording in the dashboard, which the README's pictures show."""

import re
from collections.abc import Callable, Iterator

import pytest

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.core.interfaces.run_source import RunSource
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.library.samples import sample_path
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.screen_picture import portable
from tests.house.source_tree import TOP
from tests.tui.picture import SIZE, screens

Dashboard = Callable[..., DashboardApp]
TextOf = Callable[[DashboardApp, str], str]


@pytest.fixture
def sample() -> Iterator[RunSource]:
    store = FolderStore()
    yield store.open(sample_path("sample"))
    store.close()


async def test_the_verdict_of_the_sample_is_that_its_kv_cache_limits_it(
    sample: RunSource, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(sample)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("end")
        await pilot.pause()
        verdict = text_of(app, "#diagnosis")
        episodes = app.viewer.run.judged.episodes
    assert "KV-bound from 0:" in verdict
    assert " preemptions" in verdict
    assert {EpisodeKind.KV, EpisodeKind.PREEMPTIONS, EpisodeKind.QUEUE} <= {episode.kind for episode in episodes}
    assert [episode.begin for episode in episodes] == sorted(episode.begin for episode in episodes)


async def test_the_pictures_show_the_chosen_instants_and_the_end(sample: RunSource, dashboard: Dashboard) -> None:
    first, last = await screens(dashboard(sample), (20.0,))
    assert "00:00:20" in first
    assert "ended" in last
    assert "@font-face" not in portable(last)


@pytest.mark.integration  # with the versions of the lock: others may break lines elsewhere
async def test_the_picture_of_the_docs_is_what_the_dashboard_draws(sample: RunSource, dashboard: Dashboard) -> None:
    drawn = portable((await screens(dashboard(sample), ()))[-1])
    shown = (TOP / "docs" / "dashboard.svg").read_text(encoding="utf-8")
    assert texts_of(shown) == texts_of(drawn), "the picture is old: make picture"


def texts_of(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)
