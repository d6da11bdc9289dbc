"""Panels, drawn from canned runs without an app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.trust import Trust
from servetop.core.events import Action, Command, GpuSample, LogLine
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, Tick
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.charts import Axes
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.text_runs import Lines, TextRow, row_width
from servetop.tui.keys import LIVE_LINE, REPLAY_LINE, tables
from servetop.tui.panels.footer import draw_keys, draw_status
from servetop.tui.panels.header import draw_header
from servetop.tui.panels.live.alert import alert_text, draw_alert
from servetop.tui.panels.live.diagnosis import draw_diagnosis
from servetop.tui.panels.live.gpu import draw_gpus
from servetop.tui.panels.live.kv import draw_kv, kv_blocks
from servetop.tui.panels.live.latency import draw_latency
from servetop.tui.panels.live.load import draw_load
from servetop.tui.panels.live.log import draw_log
from servetop.tui.panels.live.preemptions import draw_preemptions
from servetop.tui.panels.live.queue import draw_queue
from servetop.tui.panels.live.throughput import draw_throughput
from servetop.tui.panels.live.timeline import draw_timeline
from servetop.tui.panels.live.trust import draw_trust
from servetop.tui.panels.panel import Panel
from servetop.tui.screens.help import help_rows
from servetop.tui.state.availability import staleness, why_missing
from servetop.tui.state.frame import Frame
from servetop.tui.state.timeline_events import timeline_events

FrameOf = Callable[..., Frame]


def text(rows: list[TextRow]) -> str:
    return Lines(rows).plain


def test_the_diagnosis_keeps_its_advice_on_narrow_screens(canned: ModuleType, frame_of: FrameOf) -> None:
    found = frame_of(canned.growing(110.0), 110.0).verdict
    assert text([draw_diagnosis(found, 120)]) == (
        "▲ KV-bound: up to 99.8 % of blocks, 9.3 preemptions/s, 26 waiting → max_num_seqs ≈ 104 or more KV memory"
    )
    assert text([draw_diagnosis(found, 80)]) == (
        "▲ KV-bound: up to 99.8 % of blocks → max_num_seqs ≈ 104 or more KV memory"
    )
    assert text([draw_diagnosis(found, 30)]) == "▲ KV-bound → max_num_seqs ≈ 1…"


def test_a_run_that_drains_is_quiet_and_a_watched_server_that_takes_no_requests_is_a_warning() -> None:
    found = Diagnosis(bottleneck=Bottleneck.DRAINING, evidence=("since 0:25",))
    assert draw_diagnosis(found, 80)[0] == ("· ", "muted")
    assert draw_diagnosis(found, 80, watched=True)[0] == ("▲ ", "warn")


def test_a_long_reason_is_shortened_rather_than_dropped() -> None:
    reason = "HTTP 400: max_tokens=5000 cannot be greater than max_model_len=1024. Please request fewer output tokens."
    found = Diagnosis(
        bottleneck=Bottleneck.FAILING, evidence=("100% of requests", reason), advice="press s to stop the run"
    )
    assert text([draw_diagnosis(found, 100)]) == (
        "✖ failing: 100% of requests, HTTP 400: max_tokens=5000 cannot be greater… → press s to stop the run"
    )
    assert text([draw_diagnosis(found, 60)]) == "✖ failing: 100% of requests → press s to stop the run"


async def test_a_run_whose_engine_failed_gets_no_advice_about_its_load(
    canned: ModuleType, dashboard: Callable[..., DashboardApp], text_of: Callable[[DashboardApp, str], str]
) -> None:
    run = canned.finished()
    run.end = replace(run.end, exit_code=3, reason="vLLM was killed by SIGKILL")
    async with (app := dashboard(run, start_at=126.0)).run_test(size=(120, 40)):
        assert "✖ engine failed at 2:06: vLLM was killed by SIGKILL" in text_of(app, "#diagnosis")
        app.viewer.update_view(cursor=Cursor(at=60.0))
        assert "headroom" in text_of(app, "#diagnosis")


@pytest.mark.parametrize(("width", "height"), [(28, 2), (38, 3), (58, 6), (64, 18), (12, 1), (90, 12)])
def test_every_drawing_stays_in_its_box(canned: ModuleType, frame_of: FrameOf, width: int, height: int) -> None:
    frame = frame_of(canned.finished(), 110.0)
    axes = Axes(window=frame.window, limit=100.0)
    for rows in (
        draw_load(frame.stats, axes, width, height),
        draw_throughput(frame.stats, axes, width, height),
        draw_latency(frame.stats, axes, (width, height), metric="ttft"),
        draw_kv(frame.stats, axes, width, height),
        draw_queue(frame.stats, axes, (width, height)),
        draw_preemptions(frame.stats, axes, (width, height)),
        draw_gpus(frame.stats.gpus, width, height),
        draw_trust(frame.stats.trust, width, height),
        draw_timeline(frame, width, height),
        draw_log(frame.log, width, height),
    ):
        assert max(row_width(row) for row in rows) <= width
        assert len(rows) <= max(height, 3)


def test_the_load_panel_marks_failures_with_a_symbol(canned: ModuleType, frame_of: FrameOf) -> None:
    stats = frame_of(canned.finished(), 110.0).stats
    shown = text(
        draw_load(replace(stats, totals=replace(stats.totals, failed=12)), Axes(window=(0, 1), limit=1), 80, 3)
    )
    assert "✖ failed 12" in shown
    assert "completed" in shown
    assert "failed 0" in text(draw_load(stats, Axes(window=(0, 1), limit=1), 80, 3))


async def test_each_percentile_has_its_name_even_where_only_three_rows_fit(
    canned: ModuleType, dashboard: Callable[..., DashboardApp]
) -> None:
    app = dashboard(canned.growing())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        panel = app.screen.query_one("#latency", Panel)
        above = f" {panel._border_title}"
        rows = panel.render().plain.splitlines()
        assert [row[:5].strip(" ▸") for row in rows] == ["TTFT", "ITL", "E2EL"]
        assert [above.index(name) + 3 for name in ("p50", "p90", "p99")] == [15, 24, 33]
        assert all(row[end - 1] == "s" for row in rows for end in (15, 24, 33))


def test_seven_rows_are_enough_for_the_lines_of_three_percentiles(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 108.0)
    shown = draw_latency(frame.stats, Axes(window=frame.window, limit=4), (57, 7), metric="ttft")
    styles = {style for row in shown[4:] for _, style in row}
    assert {"sky", "orange", "rose"} <= styles


def test_the_charted_latency_is_marked(canned: ModuleType, frame_of: FrameOf) -> None:
    stats = frame_of(canned.finished(), 60.0).stats
    shown = text(draw_latency(stats, Axes(window=(0, 60), limit=1), (60, 4), metric="itl"))
    assert [line[:5] for line in shown.split("\n")] == ["     ", " TTFT", "▸ITL ", " E2EL"]


def test_events_with_unknown_tokens_have_no_itl() -> None:
    ticks = [Tick(client=ClientTick(index=number, chunks=3, ttft=LogHistogram.of([0.2]))) for number in range(8)]
    stats = live_stats(TickHistory(ticks), 2.0)
    shown = text(draw_latency(stats, Axes(window=(0, 60), limit=1), (60, 4), metric="ttft"))
    assert [line.strip() for line in shown.split("\n") if "ITL" in line] == ["ITL  tokens per event unknown"]
    alone = [replace(tick, client=replace(tick.client, chunks=1)) for tick in ticks]
    assert not live_stats(TickHistory(alone), 2.0).events_unsized


def test_kv_blocks_come_from_the_sample_or_from_usage_and_engine_facts(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 110.0)
    assert kv_blocks(frame) == (2874, 2880)
    assert frame.stats.engine is not None
    shares_only = replace(frame.stats.engine, kv_blocks_used=None, kv_blocks_total=None, kv_usage=0.5)
    assert kv_blocks(replace(frame, stats=replace(frame.stats, engine=shares_only))) == (1440, 2880)


def test_metrics_that_are_not_exported_are_named_and_never_zero(canned: ModuleType, frame_of: FrameOf) -> None:
    bare, full = frame_of(canned.without_metrics(), 60.0), frame_of(canned.finished(), 60.0)
    assert why_missing(bare, "running", "waiting") == "not exported by TGI"
    assert why_missing(full, "running", "waiting") == ""
    assert why_missing(frame_of(canned.booting(), 4.0), "running") == "the engine is not ready yet"
    assert full.stats.engine is not None
    silent = replace(full, stats=replace(full.stats, engine=replace(full.stats.engine, running=None, waiting=None)))
    assert why_missing(silent, "running", "waiting").startswith("no metrics from ")  # exported, but not sampled yet


def test_the_age_of_a_stale_sample_is_shown(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.ticks = [replace(tick, engine=tick.engine if tick.end <= 56.6 else None) for tick in run.ticks]
    assert staleness(frame_of(run, 60.0)) == "⚠ sample 3.51 s old"
    assert staleness(frame_of(run, 56.5)) == ""


def test_trust_shows_failed_checks_first_in_few_rows() -> None:
    late = Trust(slip_p99=0.25, loop_lag_p99=0.002, offered_rate=64.0, sent_rate=64.0)
    assert text(draw_trust(late, 60, 2)).split("\n")[0] == "▲ requests sent 250 ms late at p99"
    assert "▲ schedule slip p99" in text(draw_trust(late, 60, 6))
    assert "· Little's law" in text(draw_trust(late, 60, 6))
    held = Trust(slip_p99=0.001, loop_lag_p99=0.001, offered_rate=10, sent_rate=7, limited=True, concurrency_limit=13)
    assert "· sent / offered" in text(draw_trust(held, 60, 6))
    assert "70.0 %   held back by limit 13" in text(draw_trust(held, 60, 6))
    assert "· sent 70.0 %, held back by limit 13" in text(draw_trust(held, 36, 6)).split("\n")
    few = Trust(slip_p99=0.001, loop_lag_p99=0.001, littles_law_error=-0.105, in_flight=10.0)
    assert "✓ Little's law" in text(draw_trust(few, 60, 6))
    assert "−10.5 %   within 15 %" in text(draw_trust(few, 60, 6))


def test_gpus_that_do_not_fit_are_counted() -> None:
    gpus = [GpuSample(at=0.0, index=each, name="NVIDIA H200", utilisation=0.5) for each in range(8)]
    shown = text(draw_gpus(gpus, 60, 4)).split("\n")
    assert (len(shown), shown[-1]) == (4, "… and 5 more")
    assert text(draw_gpus([], 60, 4)) == "no GPU found"
    assert "–" in text(draw_gpus(gpus[:1], 60, 1))


def test_a_gpu_shows_throttling_and_the_engines_memory() -> None:
    gpu = GpuSample(at=0.0, index=0, name="H200", power=700.0, throttled="power cap", engine_memory=9 << 30)
    assert "throttled: power cap   engine 9.0 GiB" in text(draw_gpus([gpu], 90, 3))
    assert "slowed" not in text(draw_gpus([replace(gpu, throttled="")], 90, 3))


def test_log_lines_have_a_time_and_are_truncated_and_coloured() -> None:
    lines = [LogLine(at=61.0, text="INFO:  ready"), LogLine(at=62.0, text="ERROR \x1b[31mout of memory, sorry")]
    rows = draw_log(lines, 20, 5)
    assert text(rows) == "01:01   ready\n01:02 ✖ ERROR out o…"
    assert rows[1][2][1] == "bad"


def test_commands_are_events_too(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.growing(110.0)
    run.send(Action.SET_RATE, value=67.2)
    frame = frame_of(run, 110.0)
    assert [event.text for event in timeline_events(frame)][-1] == "set_rate applied"
    assert text([draw_status(frame, 60)]).startswith("✓ set_rate applied")


@pytest.mark.parametrize(("at", "status"), [(70.0, "… batch size 24 pending"), (80.0, "✓ batch size 24")])
def test_a_command_is_pending_until_it_was_applied_in_a_replay_too(
    at: float, status: str, canned: ModuleType, frame_of: FrameOf
) -> None:
    run = canned.finished()
    run.sent.append(
        Command(id=1, at=60.0, action=Action.SET_MAX_NUM_SEQS, value=24, applied_at=80.0, reply="batch size 24")
    )
    assert text([draw_status(frame_of(run, at), 60)]).startswith(status)


def test_a_command_without_a_reply_is_shown_as_pending(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.growing(110.0)
    run.sent = [Command(id=1, at=109.0, action=Action.SET_RATE, value=67.2)]
    assert text([draw_status(frame_of(run, 110.0), 60)]).startswith("… rate 67.2 req/s pending")


def test_a_failed_start_has_an_alert_and_long_reasons_are_wrapped(canned: ModuleType, frame_of: FrameOf) -> None:
    reason = alert_text(frame_of(canned.failed_to_start(), 4.0))
    assert reason.startswith("vLLM exited with code 1 after 3.2 s")
    lines = text(draw_alert(reason, 42, 3)).split("\n")
    assert lines[0] == "✖ vLLM exited with code 1 after 3.2 s:"
    assert {line[:2] for line in lines[1:]} == {"  "}
    assert alert_text(frame_of(canned.finished(), 126.0)) == ""


@pytest.mark.parametrize("width", range(30, 60))
def test_an_alert_that_does_not_fit_ends_with_an_ellipsis_after_a_word(width: int) -> None:
    reason = " ".join(f"requests{number}" for number in range(40))
    lines = text(draw_alert(reason, width, 3)).split("\n")
    assert len(lines) == 3
    assert all(len(line) <= width for line in lines)
    assert lines[2].endswith("…")
    assert lines[2].strip().removesuffix("…").split()[-1] in reason.split()


@pytest.mark.parametrize("keys", [LIVE_LINE, REPLAY_LINE])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_help_and_quit_are_always_on_the_key_line(keys: tuple[tuple[str, str], ...], width: int) -> None:
    shown = text([draw_keys(keys, width)])
    assert shown.startswith("space ")
    assert shown.endswith("? help  q quit")
    assert len(shown) <= width


def test_help_explains_every_key_and_every_number() -> None:
    shown = text(help_rows(80, tables(read_only=False)))
    for word in ("space", "↑", "[", "Home", "TTFT", "Little's law", "Request rate (QPS, RPS) +5 %"):
        assert word in shown
    for symbol in ("╌", "░", "█", "╍", "▚", "┄", "▒", "┿", "═", "▬"):
        assert f"{symbol} " in " ".join(shown.split()), "a phase of a request, or a part of the timeline"


def test_hostile_texts_reach_no_drawing(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.hostile(), 126.0)
    shown = text([draw_header(frame, 200), *draw_timeline(frame, 200, 3), *draw_log(frame.log, 200, 9)])
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold red]evil[/]" in shown
