"""Screens as SVG snapshots. `pytest tests/tui --snapshot-update` rewrites them: review them before the commit."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from servetop.core.errors import RecordingError
from servetop.core.interfaces.recording_store import RecordingInfo, RecordingPreview, RecordingState
from servetop.core.interfaces.run_source import RunSource
from servetop.recordings.read.reader import RecordingReader
from servetop.tui.app import DashboardApp
from servetop.tui.options import DashboardOptions
from tests.tui.canned_comparison import varied

Dashboard = Callable[..., DashboardApp]
Compare = Callable[..., bool]
GOLDEN = Path(__file__).parents[1] / "golden"
SIZES = [(80, 24), (120, 40), (160, 48), (200, 60), (220, 60)]


@pytest.fixture(autouse=True)
def same_colours_on_every_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("name", "options"),
    [("growing", {}), ("finished", {"start_at": 60.0}), ("without_metrics", {"start_at": 60.0})],
    ids=["live", "replay", "without-metrics"],
)
def test_the_live_screen(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, size: tuple[int, int], name: str,
    options: dict[str, Any],
) -> None:  # fmt: skip
    assert snap_compare(dashboard(getattr(canned, name)(), **options), terminal_size=size)


@pytest.mark.parametrize(
    ("name", "at", "size"),
    [
        ("booting", None, (80, 24)),
        ("failed_to_start", 4.0, (80, 24)),
        ("hostile", 110.0, (120, 40)),
        ("growing", None, (60, 16)),
        ("growing", None, (50, 12)),
    ],
    ids=["booting", "failed", "hostile-texts", "smallest", "too-small"],
)
def test_a_special_screen(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, name: str, at: float | None, size: tuple[int, int]
) -> None:
    assert snap_compare(dashboard(getattr(canned, name)(), start_at=at), terminal_size=size)


@pytest.mark.parametrize(
    ("size", "theme"),
    [((60, 16), "dark"), ((80, 24), "dark"), ((80, 24), "mono"), ((120, 40), "dark"), ((120, 40), "light"),
     ((120, 40), "mono"), ((120, 40), "contrast"), ((80, 24), "contrast"), ((120, 40), "ansi"),
     ((160, 48), "dark"), ((220, 60), "dark"), ((220, 60), "light")],
    ids=lambda each: each if isinstance(each, str) else f"{each[0]}x{each[1]}",
)  # fmt: skip
def test_the_story_of_a_run(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, size: tuple[int, int], theme: str
) -> None:
    app = dashboard(canned.finished(), options=DashboardOptions(theme=theme))
    assert snap_compare(app, terminal_size=size, press=["down"])


@pytest.mark.parametrize("key", ["question_mark", "l", "q", "m"], ids=["help", "log", "quit", "mark"])
def test_a_screen_over_the_live_one(canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, key: str) -> None:
    async def opened(pilot: Any) -> None:
        await pilot.press(key)
        for field in pilot.app.screen.query("Input"):
            field.cursor_blink = False

    app = dashboard(canned.growing(), owns_run=True)
    assert snap_compare(app, terminal_size=(80, 24), run_before=opened)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (220, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", ["2", "3", "4", "6"], ids=["requests", "distributions", "sweep", "config"])
def test_a_screen_behind_a_number(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, key: str, size: tuple[int, int]
) -> None:
    assert snap_compare(dashboard(canned.growing()), terminal_size=size, press=[key])


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("at", [None, 126.0], ids=["live", "replay"])
def test_the_engine_page(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, at: float | None, size: tuple[int, int]
) -> None:
    run = canned.growing(facts=canned.VLLM) if at is None else canned.finished()
    assert snap_compare(dashboard(run, start_at=at), terminal_size=size, press=["7"])


@pytest.mark.parametrize("theme", ["contrast", "mono", "ansi", "light"])
@pytest.mark.parametrize("key", ["2", "3", "4"], ids=["requests", "distributions", "sweep"])
def test_a_screen_behind_a_number_in_another_theme(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, key: str, theme: str
) -> None:
    app = dashboard(canned.growing(), options=DashboardOptions(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40), press=[key])


@pytest.mark.parametrize("size", [(80, 24), (160, 48), (220, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("keys", [("3", "h"), ("5", "slash", *"engine", "enter")], ids=["objectives", "search"])
def test_a_screen_that_is_asked_for_more(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttft": 0.5, "e2el": 5.0})
    assert snap_compare(dashboard(run, start_at=126.0), terminal_size=size, press=keys)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
def test_the_heat_map(canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, theme: str) -> None:
    app = dashboard(canned.growing())
    app.theme = theme
    assert snap_compare(app, terminal_size=(120, 40), press=["h"])


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark"])
def test_another_theme(canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, theme: str) -> None:
    app = dashboard(canned.growing())
    app.theme = theme
    assert snap_compare(app, terminal_size=(120, 40))


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
@pytest.mark.parametrize(
    ("keys", "size"),
    [
        (["c", *["shift+left"] * 3, "tab"], (120, 40)),
        (["c", *["shift+left"] * 3], (80, 24)),
        (["tab", "tab", "tab", "enter"], (120, 40)),
        (["2", "down", "down", "enter"], (120, 40)),
    ],
    ids=["cursor", "cursor-small", "maximised", "request"],
)
def test_a_way_of_watching(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, theme: str, keys: list[str], size: tuple[int, int]
) -> None:
    app = dashboard(canned.finished(), start_at=108.0)
    app.theme = theme
    assert snap_compare(app, terminal_size=size, press=keys)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (220, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["growing", "finished"], ids=["live", "replay"])
def test_the_batch_film(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, name: str, size: tuple[int, int]
) -> None:
    at = 64.0 if name == "finished" else None
    assert snap_compare(dashboard(getattr(canned, name)(), start_at=at), terminal_size=size, press=["8"])


@pytest.mark.parametrize("theme", ["contrast", "mono", "ansi", "light"])
def test_the_batch_film_in_another_theme(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, theme: str
) -> None:
    app = dashboard(canned.growing(), options=DashboardOptions(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40), press=["8", "c", "left", "down"])


class TwoRecordings:
    """A store with a run and a file that is not a recording."""

    location = "~/recordings"

    def paths(self) -> list[Path]:
        return [Path(f"/recordings/{name}.servetop") for name in ("20261121-104400-night-llama-2-7b", "[red]junk")]

    def preview(self, path: Path, *, bins: int) -> RecordingPreview:
        if "junk" in path.stem:
            problem = f"{path} is not a servetop recording"
            return RecordingPreview(
                info=RecordingInfo(path=path, started=1.7e9, state=RecordingState.UNREADABLE, problem=problem)
            )
        info = RecordingInfo(
            path=path, started=1.7e9, state=RecordingState.FINISHED, engine="vllm", model="llama-2-7b", label="night",
            duration=3723.0, requests=98_304, peak_output_tokens_per_s=2852.0, exit_code=0,
        )  # fmt: skip
        return RecordingPreview(info=info, output_rates=tuple(float(each * each % 97) for each in range(bins)))

    def open(self, path: Path) -> RunSource:
        raise RecordingError("not here")

    def rename(self, path: Path, name: str) -> Path:
        raise RecordingError("not here")

    def delete(self, path: Path) -> None:
        raise RecordingError("not here")


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_utc")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (220, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", ["dark", "light", "ansi"])
def test_the_recordings_browser(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, size: tuple[int, int], theme: str
) -> None:
    async def all_read(pilot: Any) -> None:
        await pilot.press("r")
        while pilot.app.screen.query_one("#recordings").unread() is not None:
            await pilot.pause(0.01)
        await pilot.press("down")

    app = dashboard(canned.growing(), options=DashboardOptions(store=TwoRecordings(), theme=theme))
    assert snap_compare(app, terminal_size=size, run_before=all_read)


@pytest.mark.parametrize(
    ("key", "size", "theme"),
    [("1", (80, 24), "dark"), ("1", (120, 40), "mono"), ("1", (220, 60), "dark"),
     ("9", (80, 24), "dark"), ("9", (120, 40), "light"), ("9", (220, 60), "dark")],
    ids=lambda each: each if isinstance(each, str) else f"{each[0]}x{each[1]}",
)  # fmt: skip
def test_a_run_with_a_baseline(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, key: str, size: tuple[int, int], theme: str
) -> None:
    async def compared(pilot: Any) -> None:
        while not pilot.app.viewer.comparison.stages:
            await pilot.pause(0.01)
        await pilot.press(key)

    baseline = contextlib.nullcontext(canned.baseline())
    options = DashboardOptions(
        theme=theme, baseline=lambda: baseline, compare=lambda _: varied(), recording=Path("canned.servetop")
    )
    app = dashboard(canned.growing(), options=options)
    assert snap_compare(app, terminal_size=size, run_before=compared)


@pytest.mark.parametrize("theme", ["contrast", "mono"])
def test_a_theme_of_our_own(canned: ModuleType, dashboard: Dashboard, snap_compare: Compare, theme: str) -> None:
    app = dashboard(canned.growing(), options=DashboardOptions(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (220, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("name", "at", "key"),
    [
        ("whitepaper", 40.0, "1"), ("whitepaper", None, "4"), ("whitepaper", None, "3"), ("vllm", None, "1"),
        ("vllm", None, "2"), ("dies", None, "1"), ("dies", None, "5"),
        ("without_metrics", 66.0, "1"),
    ],
    ids=["whitepaper", "whitepaper-sweep", "whitepaper-lengths", "vllm", "vllm-requests", "dies", "dies-log",
         "without-metrics"],
)  # fmt: skip
def test_a_recorded_run(
    dashboard: Dashboard, snap_compare: Compare, tmp_path: Path, name: str, at: float | None, key: str,
    size: tuple[int, int],
) -> None:  # fmt: skip
    """Recorded by tests/golden/record.sh: the simulator, a real vLLM, one that dies, an engine without metrics."""
    recording = Path(shutil.copy(GOLDEN / f"{name}.servetop", tmp_path))
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        app = dashboard(reader, start_at=1e6 if at is None else at)
        assert snap_compare(app, terminal_size=size, press=[key])
