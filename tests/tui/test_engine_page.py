"""The engine page: values, trends, what is not exported, scrolling, and older recordings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from servetop.analysis.exported.metric_spec import Unit
from servetop.core.config import to_data
from servetop.core.events import GpuSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.engines.metrics.spec_builders import gauge_of
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.quantities import value_text
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.drawing.trend import trend_text
from servetop.tui.panels.detail.config import config_rows
from servetop.tui.panels.detail.engine_metrics import EngineMetricsPanel, draw_page, missing_text
from servetop.tui.screens.engine_screen import EngineScreen
from servetop.tui.state.engine_page import EnginePage, trend_step
from servetop.tui.state.frame import Frame

FrameOf = Callable[..., Frame]
Dashboard = Callable[..., DashboardApp]


def text_of(page: EnginePage, width: int = 150) -> str:
    return Lines(draw_page(page, "not exported by vLLM 0.32.0", width)).plain


def row_of(page: EnginePage, name: str, width: int = 150) -> list[str]:
    """The words of the row that begins with a name, without it."""
    row = next(line for line in text_of(page, width).split("\n") if line.strip().startswith(name))
    return row.strip().removeprefix(name).split()


@pytest.fixture
def page(canned: ModuleType, frame_of: FrameOf) -> EnginePage:
    found: EnginePage = frame_of(canned.finished(), 110.0).engine_page(24)
    return found


def test_a_value_is_that_of_the_last_ten_seconds_with_the_engines_own_name(
    canned: ModuleType, page: EnginePage
) -> None:
    by_at = {tick.index: tick for tick in canned.finished().ticks}
    ended = sum(by_at[index].client.ok for index in range(400, 440))  # between the scrapes at 99.9 s and 109.9 s
    assert row_of(page, "finished: length")[0] == f"{ended / 10:.2f}".rstrip("0").rstrip(".")
    assert row_of(page, "tokens found")[:2] == ["40.0", "%"]
    assert row_of(page, "tokens found")[-1] == "vllm:prefix_cache_hits_total"
    assert row_of(page, "draft tokens accepted")[:2] == ["61.0", "%"]
    assert row_of(page, "accepted at position 1")[:2] == ["61.0", "%"]
    assert row_of(page, "time in the queue")[:5] == ["≤300", "ms", "/", "2.50", "s"]


@pytest.mark.parametrize(
    ("value", "p90", "unit", "text"),
    [
        (0.15, 0.27, Unit.SECONDS, "≤300 ms"), (0.15, 2.5, Unit.SECONDS, "≤300 ms / 2.50 s"),
        (0.31, 2.5, Unit.SECONDS, "310 ms / 2.50 s"), (0.1, 12.0, Unit.TOKENS, "≤0.30 / 12 tok"),
        (math.nan, math.nan, Unit.SECONDS, "– / –"),
    ],
)  # fmt: skip
def test_a_quantile_in_the_first_bucket_is_at_most_its_bound(value: float, p90: float, unit: Unit, text: str) -> None:
    assert value_text(value, unit, p90=p90, at_most=0.3) == text


@pytest.mark.parametrize(
    ("bucket", "unit", "text"),
    [
        ((300.0, 500.0), Unit.TOKENS, "300–500 tok"), ((0.5, 1.0), Unit.SECONDS, "500 ms–1.00 s"),
        ((500.0, math.inf), Unit.TOKENS, ">500 tok"), ((0.0, 0.3), Unit.SECONDS, "350 ms / 470 ms"),
        (None, Unit.SECONDS, "350 ms / 470 ms"),
    ],
)  # fmt: skip
def test_quantiles_in_one_bucket_are_its_bounds(bucket: tuple[float, float] | None, unit: Unit, text: str) -> None:
    assert value_text(0.35, unit, p90=0.47, at_most=0.3, bucket=bucket) == text


def test_what_the_engine_does_not_export_is_one_paragraph(page: EnginePage) -> None:
    text = " ".join(text_of(page).split())
    assert text.count("not exported by vLLM 0.32.0") == 1
    absent = text.partition("not exported by vLLM 0.32.0: ")[2]
    assert "Queue and scheduler (KV fetches, " in absent
    assert "; KV offload; KV transfer (NIXL); " in absent
    assert absent.endswith("API server process")


def test_metrics_that_say_nothing_are_named_without_a_row_each(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    names = [f"vllm:request_success_total{{finished_reason={each}}}" for each in ("stop", "length", "abort")]
    caches = [f"vllm:{cache}_{count}_total" for cache in ("prefix_cache", "external_prefix_cache")
              for count in ("hits", "queries")]  # fmt: skip
    names += [*caches, "vllm:kv_offload_load_bytes_total"]
    rows = [(50.0, [0.0, 5.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0]), (60.0, [0.0, 9.0, 0.0, 0.0, 300.0, 0.0, 0.0, 0.0])]
    run.series = [SeriesScrape(at=at, names="\n".join(names), numbers=pack_numbers(values)) for at, values in rows]
    text = text_of(frame_of(run, 60.0).engine_page(24))
    assert "  0 throughout: finished: stop, abort\n" in text
    assert "  no values: tokens found externally\n" in text
    assert "\nKV offload  0 throughout: loaded" in text
    assert "  tokens found   " in text  # a hit rate of 0 is a result


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "MFU unknown: no GPU was recorded"),
        (["GeForce"], "MFU unknown: servetop has no data sheet of GeForce"),
        (["NVIDIA L4", "NVIDIA L40S"], "MFU unknown: GPUs of several kinds: NVIDIA L4, NVIDIA L40S"),
        (["NVIDIA L4"], "MFU: L4"),
    ],
)
def test_the_share_of_the_gpus_peak_is_beside_the_estimate(
    canned: ModuleType, frame_of: FrameOf, names: list[str], words: str
) -> None:
    run = canned.finished()
    gpus = [GpuSample(at=0.0, index=index, name=name, engine_memory=1) for index, name in enumerate(names)]
    run.ticks = [replace(tick, gpus=tuple(replace(gpu, at=tick.end) for gpu in gpus)) for tick in run.ticks]
    page = frame_of(run, 110.0).engine_page(24)
    assert words in " ".join(text_of(page).split())
    if len(names) == 1 and "MFU: " in words:
        (line,) = [line for group in page.groups for line in group.lines if line.spec.name == "MFU:"]
        (flops,) = [line for group in page.groups for line in group.lines if line.spec.peak_share == "MFU"]
        assert line.value == pytest.approx(flops.value / 121e12)
        assert line.trend[-1] == pytest.approx(flops.trend[-1] / 121e12)


@pytest.mark.parametrize(("width", "source"), [(78, ""), (116, "prefix_cache_hits_total"), (156, "vllm:prefix_cache_")])
def test_a_row_fits_its_panel_and_a_narrow_one_has_no_source(page: EnginePage, width: int, source: str) -> None:
    rows = text_of(page, width).split("\n")
    assert max(len(row) for row in rows) <= width
    assert "…" not in "".join(rows)
    (hits,) = [row for row in rows if row.startswith("  tokens found  ")]
    assert hits.rstrip().split(" ")[-1].startswith(source)
    assert ("cache_hits" in hits) is bool(source)


def test_metrics_that_a_metrics_url_lacks_are_not_blamed_on_the_engine(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    assert missing_text(frame_of(run, 110.0)) == "not exported by vLLM 0.32.0"
    run.config = replace(run.config, engine=replace(run.config.engine, metrics_url="http://prom:9090"))
    assert missing_text(frame_of(run, 110.0)) == "not read from --metrics-url"


def test_a_page_in_the_past_is_that_of_the_live_run_at_that_time(canned: ModuleType, frame_of: FrameOf) -> None:
    live, replayed = (
        frame_of(run, 80.0).engine_page(24) for run in (canned.growing(80.0, facts=canned.VLLM), canned.finished())
    )
    assert text_of(live) == text_of(replayed)


@pytest.mark.parametrize(("at", "known"), [(50.0, False), (110.0, True)])
def test_a_series_that_appears_later_is_not_known_before(
    canned: ModuleType, frame_of: FrameOf, at: float, known: bool
) -> None:
    run = canned.finished()
    name = "vllm:corrupted_requests_total"
    run.series = [
        SeriesScrape(at=20.0, names="vllm:num_preemptions_total", numbers=pack_numbers([1.0])),
        SeriesScrape(at=100.0, names=name, numbers=pack_numbers([5.0])),
    ]
    assert (name in text_of(frame_of(run, at).engine_page(24))) is known


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"has_series": False},
            "this recording was made before servetop recorded this page (format 1.6): screen 1 has what it knows of "
            "the engine, such as KV blocks and preemptions; servetop replay sample has this page",
        ),
        ({"series": ()}, "no metrics from vLLM yet"),
        ({"facts": None}, "the engine is not ready yet"),
        (
            {"facts": EngineFacts(name="openai", title="OpenAI")},
            "OpenAI has no metrics that servetop can show: give their address with --metrics-url",
        ),
    ],
    ids=["older", "empty", "booting", "unknown"],
)
def test_a_page_without_values_says_why(
    canned: ModuleType, frame_of: FrameOf, change: dict[str, object], reason: str
) -> None:
    run = canned.finished()
    for name, value in change.items():
        setattr(run, name, value)
    page = frame_of(run, 110.0).engine_page(24)
    assert (page.groups, page.reason) == ((), reason)


def test_the_table_of_a_plug_in_is_that_of_the_recording(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    table = to_data([gauge_of("Batching\x1b", "depth", "nimble_depth")])
    run.facts = EngineFacts(name="nimble", title="Nimble", exported=table)
    run.series = [SeriesScrape(at=20.0, names="nimble_depth", numbers=pack_numbers([7.0]))]
    frame = frame_of(run, 60.0)
    assert row_of(frame.engine_page(24), "depth") == ["7", "nimble_depth"]
    assert "\x1b" not in text_of(frame.engine_page(24))
    assert "nimble_depth" not in Lines(config_rows(frame.header, 90)).plain  # screen 6


def test_the_oldest_scrape_alone_shows_gauges_and_no_rates(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.series = [
        SeriesScrape(at=20.0, names="process_open_fds\nprocess_cpu_seconds_total", numbers=pack_numbers([7.0, 5.0]))
    ]
    page = frame_of(run, 60.0).engine_page(24)
    assert row_of(page, "open files")[0] == "7"
    assert "  no values: CPU cores" in text_of(page)
    assert page.age == 40.0


def test_values_and_trends_span_two_scrapes_of_a_slow_prometheus_server(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    name = "vllm:num_preemptions_total{engine=0}"
    names = f"{name}\nvllm:kv_offload_load_bytes_total"
    run.series = [
        SeriesScrape(at=float(at), names=names, numbers=pack_numbers([0.0, 100.0 * at])) for at in range(5, 125, 15)
    ]
    page = frame_of(run, 79.0).engine_page(24)  # 14 s after the last scrape
    (line,) = [line for group in page.groups for line in group.lines if line.spec.name == "loaded"]
    assert (page.window, page.step, page.age, page.outdated) == (18.0, 20.0, 14.0, False)
    assert line.value == pytest.approx(100.0)
    assert line.trend[-2:] == pytest.approx(100.0)  # from 20 s to 60 s; the first scrape is at 5 s
    failing = canned.finished()
    failing.series = run.series[:3]
    assert frame_of(failing, 79.0).engine_page(24).outdated


def test_a_trend_is_scaled_to_its_peak_and_a_line_if_it_is_constant() -> None:
    assert trend_text(np.array([0.0, np.nan, 1.0, 4.0, 8.0]), 7) == "  · ▂▅█"
    assert trend_text(np.array([1.0, 2.0, 3.0]), 2) == "▆█"
    assert trend_text(np.array([5.0, 4.95, np.nan, 5.0]), 5) == " ── ─"
    assert trend_text(np.array([0.0, 0.0, 5.0]), 3) == "··█"
    assert (trend_text(np.empty(0), 3), trend_text(np.array([1.0]), 0)) == ("   ", "")


def test_a_step_of_the_trend_has_at_least_two_scrapes_and_a_round_length() -> None:
    assert [trend_step(span, 24) for span in (10.0, 48.0, 49.0, 120.0, 600.0)] == [2.0, 2.0, 3.0, 5.0, 30.0]
    assert trend_step(1e6, 10) == 1e5


def test_a_hostile_label_is_drawn_as_harmless_text(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    name = "vllm:request_success_total{finished_reason=\x1b]0;owned\x07\u202e}"
    run.series = [SeriesScrape(at=at, names=name, numbers=pack_numbers([at])) for at in (20.0, 50.0)]
    text = text_of(frame_of(run, 60.0).engine_page(24))
    assert "finished:" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


async def test_the_page_scrolls_to_its_end_and_back(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("7")
        assert isinstance(app.screen, EngineScreen)
        panel = app.screen.query_one(EngineMetricsPanel)
        await pilot.press(*["pagedown"] * 3)
        assert panel.render().plain.split("\n")[-1].endswith("process")
        await pilot.press("up", *["pageup"] * 3)
        assert panel.render().plain.startswith("Prefix cache")
        await pilot.press("escape")
        assert not isinstance(app.screen, EngineScreen)
