"""The top line: engine, model, GPU, stage, time, and whether this is live."""

from __future__ import annotations

import math
from collections.abc import Set

from servetop.core.events import StageChange
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.core.tick import LoadGauges
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined, row_width, shortened, spread
from servetop.tui.panels.live.gpu import gpu_name
from servetop.tui.panels.panel import Panel
from servetop.tui.state.availability import engine_name
from servetop.tui.state.baseline import STYLE, Baseline
from servetop.tui.state.frame import Frame
from servetop.tui.state.rest_of_sweep import rest_of_sweep

_SETTLED = (0, 130)
"""Exit codes of runs that ended as planned or were interrupted."""
_LEAST_FIRST = (
    "changed keys",
    "gpu",
    "run share",
    "rest",
    "owner",
    "word",
    "version",
    "changes",
    "model tail",
    "brand",
    "limit",
    "as felt",
    "model",
    "baseline tail",
    "unit",
    "place",
    "change count",
    "engine tail",
    "batch",
    "objectives",
    "baseline",
    "stage",
)
"""What gives way as the line gets narrower, in this order; time and state never do."""
_GAP = 2
"""Blank cells between both sides, at least."""
_MODEL_TAIL, _ENGINE_TAIL = 14, 8
"""Cells of the model's and of the engine's name without their tails."""
_LONGEST_BASELINE, _BASELINE_TAIL = 24, 10
"""Cells of the baseline's name, and without its tail."""
_LONGEST_SERVER = 24
"""Cells of the name of the server that is opened."""
_AMBIGUOUS = ("name", "version", "count", "args", "environment")
"""Last parts of keys that say little without their group."""
_MOST_KEYS = 3
"""Changed keys that are named; of more only the number is."""


class HeaderLine(Panel):
    """One row without a frame."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        return [draw_header(frame, width)]


def draw_header(frame: Frame, width: int) -> TextRow:
    """Engine and model at the left, the stage after them, time and state at the right; the least important give way."""
    for number in range(len(_LEAST_FIRST) + 1):
        omitted = frozenset(_LEAST_FIRST[:number])
        left, right = _left(frame, omitted), _right(frame, omitted)
        if row_width([*left, *right]) + _GAP <= width:
            break
    return spread(left, right, width=width)


def _left(frame: Frame, omitted: Set[str]) -> list[Run]:
    """Return what runs: engine, model and GPU."""
    engine = engine_name(frame.engine, otherwise=frame.header.config.engine.known_as)
    if "version" in omitted:
        engine = engine[:1]
    if "engine tail" in omitted:
        engine = fitted(engine, _ENGINE_TAIL)
    model = _model_name(frame, omitted)
    gpu = "" if "gpu" in omitted else gpu_name(frame.stats.gpus)
    more: list[Run] = [
        run for name, style in ((model, ""), (gpu, "muted")) if name for run in ((" · ", ""), (name, style))
    ]
    brand: list[Run] = [] if "brand" in omitted else [("servetop ", "title"), ("▸ ", "muted")]
    origin = "predicted " if frame.header.predicted else "imported " if frame.header.imported is not None else ""
    return [*brand, *([(origin, "warn")] if origin else []), *engine, *more, *baseline_runs(frame, omitted=omitted)]


def baseline_runs(frame: Frame, *, omitted: Set[str] = frozenset()) -> list[Run]:
    """` vs main · engine.kv_blocks_total, workload.seed differ`: the baseline and what else differs from it."""
    baseline = frame.baseline
    if baseline is None or "baseline" in omitted:
        return []
    name = sanitize_line(baseline.name)
    runs: list[Run] = [
        (" vs ", "muted"),
        (shortened(name, _BASELINE_TAIL if "baseline tail" in omitted else _LONGEST_BASELINE), STYLE),
    ]
    return [*runs, *([] if "change count" in omitted else _change_runs(baseline, omitted))]


def _change_runs(baseline: Baseline, omitted: Set[str]) -> list[Run]:
    """Return what differs between both manifests; a difference of the workload stands out."""
    unlike, changed = baseline.incomparable_keys, baseline.changed_keys
    keys, style = (unlike, "bad") if unlike else (changed, "warn")
    if not keys:
        return [] if "changes" in omitted else [(" · ", ""), ("same manifest", "muted")]
    plural = "s" * (len(keys) > 1)
    if "changes" in omitted:
        return [(" · ", ""), ("▲ unlike" if unlike else f"{len(keys)} key{plural}", style)]
    named = "changed keys" not in omitted and len(keys) <= _MOST_KEYS
    text = ", ".join(sanitize_line(_short(key)) for key in keys) if named else f"{len(keys)} key{plural}"
    differs = f"{text} {'differs' if len(keys) == 1 else 'differ'}"
    return [(" · ", ""), (f"▲ not comparable: {differs}" if unlike else differs, style)]


def _short(key: str) -> str:
    """Return the last part of a dotted key, with the group that an ambiguous one needs."""
    group, _, name = key.rpartition(".")
    return f"{group.rpartition('.')[2]} {name}".strip() if name in _AMBIGUOUS else name


def _model_name(frame: Frame, omitted: Set[str]) -> str:
    """Return the model's name; of a local folder only its last part, so that it does not change."""
    name = sanitize_line((frame.engine and frame.engine.model) or frame.header.config.engine.model)
    if name.startswith(("/", "./", "~")) or "owner" in omitted:
        name = name.rstrip("/").rsplit("/", 1)[-1] or name
    if "model tail" in omitted:
        name = shortened(name, _MODEL_TAIL)
    return "" if "model" in omitted else name


def _right(frame: Frame, omitted: Set[str]) -> list[Run]:
    """Return how it runs: stage, batch size, objectives, time and state."""
    stage = [] if "stage" in omitted else stage_runs(frame, omitted=omitted)
    objectives = [] if "objectives" in omitted else objective_runs(frame, omitted=omitted)
    return [
        *stage,
        *objectives,
        ("  ", ""),
        (formats.clock_time(frame.view.playhead.at), "strong"),
        (" ", ""),
        *state(frame),
    ]


def stage_runs(frame: Frame, *, omitted: Set[str] = frozenset()) -> list[Run]:
    """`stage 3/8 64 req/s · batch 192`, and whether it is held or paused."""
    load, stage = frame.stats.load, frame.stage
    if frame.watched:
        name: list[Run] = [(f" {shortened(sanitize_line(frame.server), _LONGEST_SERVER)}", "key")]
        return [("watch", "strong"), *(name if frame.server else [])]
    if stage is None:
        return [("no load yet", "muted")]
    label = shortened(sanitize_line(stage.label), 40)
    if stage.request_rate is None:
        return [(label, "warn")]
    runs: list[Run] = [(_place(frame, stage, omitted), "muted"), (label, "strong")]
    if frame.cursor is None and load.request_rate is not None and load.request_rate != stage.request_rate:
        steered = _steered(load)
        runs.append((f" → {steered.removesuffix(' req/s') if 'unit' in omitted else steered}", "key"))
    runs += [] if "batch" in omitted else _batch_runs(frame, stage, label)
    if "rest" not in omitted and (rest := rest_of_sweep(frame)) is not None:
        runs.append((f" · {rest.text}", "muted"))
    if load.paused:
        runs.append((" ‖ load paused", "warn"))
    elif load.holding:
        runs.append((" ‖ held", "warn"))
    return runs


def _place(frame: Frame, stage: StageChange, omitted: Set[str]) -> str:
    """`stage 3/8 `, or without its word `3/8 `; of a stage that was not planned, the number only with its word."""
    planned = len(frame.header.config.stages)
    number = f"{stage.index + 1}/{planned} " if stage.index < planned else f"{stage.index + 1} "
    if "place" in omitted or ("word" in omitted and stage.index >= planned):
        return ""
    return number if "word" in omitted else f"stage {number}"


def _steered(load: LoadGauges) -> str:
    """Return the rate in force; without one the load is a closed loop with its concurrency."""
    if load.request_rate is not None and math.isfinite(load.request_rate):
        return f"{formats.number(load.request_rate)} req/s"
    return "closed loop" if load.max_concurrency is None else f"closed loop, {load.max_concurrency} concurrent"


def _batch_runs(frame: Frame, stage: StageChange, label: str) -> list[Run]:
    """The batch size in force, unless the stage's label shows it; an arrow marks one that differs from the label's."""
    sample = frame.stats.engine
    sizes = [sample.max_num_seqs if sample else None, stage.max_num_seqs]
    size = next((formats.exact(each) for each in sizes if each is not None), "")
    if not size or f"batch {size}" in label:
        return []
    return [(f" → batch {size}", "key")] if "batch" in label else [(" · ", "muted"), (f"batch {size}", "strong")]


def objective_runs(frame: Frame, *, omitted: Set[str] = frozenset()) -> list[Run]:
    """`SLO 87.0 % · run 94.0 %`: the requests of the window and of the run that met all objectives; empty without any.

    At the end of a run that has ended `SLO 94.0 % of the run`; `as felt` if time in the client's queue made requests
    miss them. A recording without these counts has the share of the window's values within each objective instead.
    """
    found, limits = frame.stats.attainment, frame.header.config.goodput
    if not limits or frame.booting:
        return []
    if math.isnan(found.run) and frame.stats.totals.completed:
        shares = [
            [
                (
                    f"{metric.upper()} " if "limit" in omitted else f"{metric.upper()} ≤ {formats.seconds(limit)} ",
                    "muted",
                ),
                (formats.percent(frame.stats.within.get(metric)), "strong"),
            ]
            for metric, limit in limits.items()
        ]
        return [("  ", ""), *joined(shares, width=24 if "run share" in omitted else 60, gap=" · ")]
    runs: list[Run] = [("  SLO ", "muted"), ("as felt " if found.differs and "as felt" not in omitted else "", "muted")]
    if frame.shows_the_end:
        runs.append((formats.percent(found.run), "strong"))
        return runs if "run share" in omitted else [*runs, (" of the run", "muted")]
    runs.append((formats.percent(found.window), "strong"))
    return runs if "run share" in omitted else [*runs, (" · run ", "muted"), (formats.percent(found.run), "strong")]


def state(frame: Frame) -> list[Run]:
    """Recording, behind the live edge, playing, paused or ended; each with its own symbol."""
    playhead = frame.view.playhead
    if frame.live and playhead.following:
        return [("● REC", "bad")]
    motion = "▶" if playhead.playing else "‖"
    if frame.live:
        behind = formats.clock(frame.edge - playhead.at)
        return [(f"{motion} {formats.speed(playhead.speed)} ", "key"), (f"−{behind}", "warn")]
    if frame.shows_the_end:
        return [ending(frame)]
    return [(f"{motion} replay {formats.speed(playhead.speed)}", "key")]


def ending(frame: Frame) -> Run:
    """Return the outcome of the run."""
    end = frame.end
    if end is None:
        return ("■ broke off", "warn")
    return ("■ ended", "strong") if end.exit_code in _SETTLED else (f"✖ failed ({end.exit_code})", "bad")
