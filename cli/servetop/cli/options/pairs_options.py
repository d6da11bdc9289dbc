"""The options of `servetop run-pairs`: those of a run, which apply to both configurations, and those of the series."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.compare_options import MARGIN
from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.engine_options import ConnectionOptions, EngineOptions
from servetop.cli.options.load_options import LoadOptions
from servetop.cli.options.output_options import AsJson, ResultOptions
from servetop.cli.options.request_options import DataOptions, RequestOptions
from servetop.core.units import parse_seconds

_PANEL = "Pairs"
pairs_option = partial(Option, panel=_PANEL)


@options_class
class SeriesOptions:
    """What differs between A and B, and how long to measure."""

    a: Annotated[
        str | None,
        pairs_option(
            "--a",
            "Options of A only, as one text: servetop's own, and all others go to the engine.",
            brief="Options of A only, as one text.",
            unit="OPTIONS",
        ),
    ] = None
    b: Annotated[str | None, pairs_option("--b", "Options of B only.", brief="Options of B only.", unit="OPTIONS")] = (
        None
    )
    budget: Annotated[
        float,
        pairs_option(
            "--budget",
            "Time for everything, starts of engines included: seconds, or 20m, 2h.",
            brief="Time for everything: 20m, 2h.",
            unit="TIME",
            default="30m",
            parse=parse_seconds,
        ),
    ] = 1800.0
    pairs: Annotated[
        int | None,
        pairs_option("--pairs", "Measure at most this many pairs.", default="as many as it takes", minimum=3),
    ] = None
    metric: Annotated[
        tuple[str, ...],
        pairs_option(
            "--metric",
            "Metric to judge, as in p99_ttft_ms; repeat. Fewer metrics need fewer pairs.",
            brief="Metric to judge: p99_ttft_ms; repeat.",
            unit="KEY",
            default="output_throughput, p50_ttft_ms, mean_tpot_ms",
        ),
    ] = ()
    margin: Annotated[dict[str, float] | None, dataclasses.replace(MARGIN, panel=_PANEL)] = None
    into: Annotated[
        Path | None,
        pairs_option(
            "--into",
            "Folder for the recordings.",
            brief="Folder for the recordings.",
            unit="FOLDER",
            default="a new one in the recordings folder",
        ),
    ] = None
    resume: Annotated[
        bool,
        pairs_option(
            "--resume", "Continue the series in the folder of --into.", brief="Continue the series of --into."
        ),
    ] = False
    as_json: AsJson = False


@options_class
class RunPairsOptions:
    """The options of `servetop run-pairs`."""

    files: Annotated[
        tuple[str, ...],
        Argument(
            "CONFIG",
            "Two files, A and B, as for --config: TOML or recordings. (default: the options below)",
            complete=completions.configs,
        ),
    ] = ()
    series: SeriesOptions = SeriesOptions()
    engine: EngineOptions = EngineOptions()
    connection: ConnectionOptions = ConnectionOptions()
    load: LoadOptions = LoadOptions()
    data: DataOptions = DataOptions()
    requests: RequestOptions = dataclasses.field(default_factory=RequestOptions)
    results: ResultOptions = dataclasses.field(default_factory=ResultOptions)
