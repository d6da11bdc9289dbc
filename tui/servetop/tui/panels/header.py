"""The top line: engine, model, GPU, stage, time, and whether this is live."""

from __future__ import annotations

import math

from servetop.core.events import StageChange
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import Run, TextRow, joined, row_width, shortened, spread
from servetop.tui.panels.live.gpu import gpu_name
from servetop.tui.panels.panel import Panel
from servetop.tui.state.availability import engine_name
from servetop.tui.state.frame import Frame

_SETTLED = (0, 130)
"""Exit codes of runs that ended as planned or were interrupted."""
_NAME_ROOM = 14
"""Cells for the engine's name, for which the rest of the line is shortened."""
_LEAST_ROOM = 8
"""Cells for it beside the shortest form of the rest."""


class HeaderLine(Panel):
    """One row without a frame."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        return [draw_header(frame, width)]


def draw_header(frame: Frame, width: int) -> TextRow:
    """Engine and model at the left, the stage after them, time and state at the right; the least important give way."""
    now: list[Run] = [("  ", ""), (formats.clock_time(frame.view.playhead.at), "strong"), (" ", ""), *state(frame)]
    name: list[Run] = [("servetop ", "title"), ("▸ ", "muted")]
    middle = _middle(frame, width - row_width([*name, *now]) - 2, short=width < 100)
    room = width - row_width([*name, *middle, *now]) - 2
    engine = engine_name(frame.engine, otherwise=frame.header.config.engine.known_as)
    model = sanitize_line((frame.engine and frame.engine.model) or frame.header.config.engine.model)
    parts: list[TextRow] = [engine]
    if model:
        parts.append([(_short_model(model, room - row_width(engine) - 3), "")])
    if gpu := gpu_name(frame.stats.gpus):
        parts.append([(gpu, "muted")])
    return spread([*name, *joined(parts, width=room, gap=" · ")], [*middle, *now], width=width)


def _middle(frame: Frame, width: int, *, short: bool) -> list[Run]:
    """The stage and the objectives, as much of them as leaves room in `width` cells for the engine's name."""
    stage, objectives = stage_runs(frame, short=True, batch=False), objective_runs(frame, omitted=4)
    choices = [
        *(
            (
                _NAME_ROOM,
                [*stage_runs(frame, short=number > 1, batch=number < 3), *objective_runs(frame, omitted=number)],
            )
            for number in range(2 if short else 0, 4)
        ),
        (_LEAST_ROOM, [*stage, *objectives]),
        (_LEAST_ROOM, stage),
    ]
    return next((runs for room, runs in choices if width - row_width(runs) >= room), [])


def _short_model(model: str, width: int) -> str:
    """A hub name without its owner if it is too long; of a local folder only its name, so that it does not change."""
    if model.startswith(("/", "./", "~")):
        model = model.rstrip("/").rsplit("/", 1)[-1] or model
    return model if row_width([(model, "")]) <= width else shortened(model.rsplit("/", 1)[-1], max(width, 4))


def stage_runs(frame: Frame, *, short: bool = False, batch: bool = True) -> list[Run]:
    """`stage 3/8 64 req/s · batch 192`, and whether it is held or paused; `short` omits the word stage."""
    load, stage = frame.stats.load, frame.stage
    if stage is None:
        return [("no load yet", "muted")]
    label = shortened(sanitize_line(stage.label), 40)
    if stage.request_rate is None:
        return [(label, "warn")]
    planned = len(frame.header.config.stages)
    place = f"{stage.index + 1}/{planned} " if stage.index < planned else f"{stage.index + 1} "
    runs: list[Run] = [("" if short else "stage ", "muted"), (place, "muted"), (label, "strong")]
    if frame.cursor is None and load.request_rate is not None and load.request_rate != stage.request_rate:
        runs.append((f" → {formats.number(load.request_rate)} req/s", "key"))
    runs += _batch_runs(frame, stage, label) if batch else []
    if load.paused:
        runs.append((" ‖ load paused", "warn"))
    elif load.holding:
        runs.append((" ‖ held", "warn"))
    return runs


def _batch_runs(frame: Frame, stage: StageChange, label: str) -> list[Run]:
    """The batch size in force, unless the stage's label shows it; an arrow marks one that differs from the label's."""
    sample = frame.stats.engine
    sizes = [sample.max_num_seqs if sample else None, stage.max_num_seqs]
    size = next((formats.exact(each) for each in sizes if each is not None), "")
    if not size or f"batch {size}" in label:
        return []
    return [(f" → batch {size}", "key")] if "batch" in label else [(" · ", "muted"), (f"batch {size}", "strong")]


def objective_runs(frame: Frame, *, omitted: int = 0) -> list[Run]:
    """`SLO 87.0 % · run 94.0 %`: the requests of the window and of the run that met all objectives; empty without any.

    `as felt` if time in the client's queue made requests miss them. A recording without these counts has the share of
    the window's values within each objective instead. With 1 or more `omitted` the run's share goes, then `as felt`.
    """
    found, limits = frame.stats.attainment, frame.header.config.goodput
    if not limits or frame.booting:
        return []
    if math.isnan(found.run) and frame.stats.totals.completed:
        shares = [
            [
                (f"{metric.upper()} ≤ {formats.seconds(limit)} ", "muted"),
                (formats.percent(frame.stats.within.get(metric)), "strong"),
            ]
            for metric, limit in limits.items()
        ]
        return [("  ", ""), *joined(shares, width=24 if omitted else 60, gap=" · ")]
    runs: list[Run] = [("  SLO ", "muted"), ("as felt " if found.differs and omitted < 4 else "", "muted")]
    runs.append((formats.percent(found.window), "strong"))
    return runs if omitted else [*runs, (" · run ", "muted"), (formats.percent(found.run), "strong")]


def state(frame: Frame) -> list[Run]:
    """Recording, behind the live edge, playing, paused or ended; each with its own symbol."""
    playhead, end = frame.view.playhead, frame.end
    if frame.live and playhead.following:
        return [("● REC", "bad")]
    motion = "▶" if playhead.playing else "‖"
    if frame.live:
        behind = formats.minutes(frame.edge - playhead.at)
        return [(f"{motion} {formats.speed(playhead.speed)} ", "key"), (f"−{behind}", "warn")]
    if end is not None or playhead.at >= frame.edge:
        return [ending(frame)]
    return [(f"{motion} replay {formats.speed(playhead.speed)}", "key")]


def ending(frame: Frame) -> Run:
    """The outcome of the run."""
    end = frame.end
    if end is None:
        return ("■ broke off", "warn")
    return ("■ ended", "strong") if end.exit_code in _SETTLED else (f"✖ failed ({end.exit_code})", "bad")
