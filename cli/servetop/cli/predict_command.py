"""`servetop predict` and `servetop validate`: the simulator in virtual time, and how true it is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.cli.configuration.sweep_file import predict_specs, seed_of
from servetop.cli.tables import cell, light_table, out_tables, titled
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import ExitCode, UsageError
from servetop.run import console
from servetop.simulator.predict.predict import DEFAULT_STAGE, PredictSpec, predict
from servetop.simulator.validate.validate import validate
from servetop.simulator.validate.validation_tables import markdown, report
from servetop.tui.drawing import formats
from servetop.workload.validation import check_load


def run_predict(preset: str | None, options: Mapping[str, Any], *, settings: Sequence[str], as_json: bool) -> int:
    """Predict a preset's grid, or the one that options describe."""
    given = parse_settings(settings)
    if preset is None:
        specs = [spec_of(options, given)]
    else:
        named = [name for name, value in options.items() if value is not None]
        if named:
            option = f"--{named[0].replace('_', '-')}"
            raise UsageError(f"{preset} says what to predict: leave out {option}, or use --set KEY=VALUE")
        specs = predict_specs(preset, settings=given)
    found = predict(specs)
    if as_json:
        console.out_json(found)
    else:
        _print_cells(found)
    return int(ExitCode.OK)


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """A dictionary from KEY=VALUE texts; the simulator knows the keys."""
    bad = next((text for text in texts if "=" not in text or text.startswith("=")), None)
    if bad is not None:
        raise UsageError(f"--set {bad}: give KEY=VALUE, as in kv_blocks=2000")
    return dict(text.split("=", 1) for text in texts)


def spec_of(options: Mapping[str, Any], settings: Mapping[str, str]) -> PredictSpec:
    """The grid of plain options; without a rate all requests are sent at once."""
    given = {key: value for key, value in options.items() if value is not None}
    batches = _numbers("max_num_seqs", given.pop("max_num_seqs", None), int) or (None,)
    rates = _numbers("request_rate", given.pop("request_rate", None), float) or (math.inf,)
    num_prompts = given.pop("num_prompts", DEFAULT_STAGE.num_prompts)
    stages = tuple(
        StageConfig(max_num_seqs=batch, request_rate=rate, num_prompts=num_prompts)
        for batch, rate in itertools.product(batches, rates)
    )
    workload = WorkloadConfig(
        **{key: given.pop(key) for key in ("input_len", "output_len", "arrivals") if key in given}
    )
    check_load(workload, stages)
    return PredictSpec(workload=workload, stages=stages, seed=seed_of(settings), settings=settings, **given)


def _numbers(key: str, text: str | None, kind: type[Any]) -> tuple[Any, ...]:
    if text is None:
        return ()
    try:
        values = tuple(kind(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(value > 0 for value in values):
        raise UsageError(f"--{key.replace('_', '-')} {text}: give numbers above 0, as in 32,64")
    return values


def _print_cells(found: Mapping[str, Any]) -> None:
    columns = ("", "batch", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99", "preempt.", "KV max")
    cells = light_table(*columns)
    for each in found["cells"]:
        cells.add_row(*(cell(word) for word in _row(each)))
    out_tables(titled("Predicted (latency in ms)", cells))
    for each in found["cells"]:
        if "error" in each:
            console.out(f"{each['label'] or each['engine']}: {each['error']}")
    took = f"{formats.minutes(found['simulated_s'])} of serving in {formats.seconds(found['elapsed_s'])}"
    console.out(f"simulated  {took}")


def _row(cell: Mapping[str, Any]) -> list[str]:
    rate = math.inf if cell["request_rate"] == "inf" else float(cell["request_rate"])
    heading = [cell["label"] or cell["engine"], formats.count(cell["max_num_seqs"]), formats.number(rate)]
    if "error" in cell:
        return [*heading, "cannot start", *[formats.UNKNOWN] * 5]
    latencies = (cell["ttft_ms"]["p50"], cell["ttft_ms"]["p99"], cell["itl_ms"]["p99"])
    return [
        *heading,
        formats.number(cell["output_throughput"]),
        *(formats.number(value) for value in latencies),
        formats.exact(cell["preemptions"]),
        formats.percent(cell["max_kv_usage"]),
    ]


def run_validate(*, as_json: bool) -> int:
    """Hold the simulator against the published tables; 99 when a target is missed."""
    tables = validate(predict_specs)
    found = report(tables)
    if as_json:
        console.out_json(found)
    else:
        console.out(*markdown(tables).splitlines())
    if not found["passed"]:
        console.message("the simulator misses a target: see the lines marked MISSED")
        return int(ExitCode.THRESHOLDS)
    return int(ExitCode.OK)
