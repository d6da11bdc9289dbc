"""The options that say how a run is judged, recorded and shown."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_goodput, parse_max_failures, parse_metadata, parse_percentiles

OUTPUT = "Recording and output"

MetricPercentiles = Option(
    "--metric-percentiles",
    "Percentiles of the summary, as in 50,90,95,99,99.9; 50, 90, 95 and 99 are always included.",
    panel=OUTPUT,
    unit="LIST",
    parse=parse_percentiles,
)
MAX_FAILURES = Option(
    "--max-failures",
    "Exit with 1 if more requests fail: a number or a share, as in 10, 2% or 0.02.",
    panel=OUTPUT,
    unit="COUNT|SHARE",
    parse=parse_max_failures,
)
Record = Annotated[
    Path | None,
    Option("--record", "File to record to.", panel=OUTPUT, unit="FILE", default="a new file in the recordings folder"),
]
Headless = Annotated[bool, Option("--headless", "Run without the dashboard.", panel=OUTPUT)]
Detach = Annotated[bool, Option("--detach", "Run in the background and print how to find the run.", panel=OUTPUT)]
SummaryAsJson = Annotated[bool, Option("--json", "Print only the summary, as JSON (implies --headless).", panel=OUTPUT)]
AsJson = Annotated[bool, Option("--json", "Print JSON.")]


@options_class
class ResultOptions:
    """How the results of a run are judged, and what is kept with them."""

    goodput: Annotated[
        Mapping[str, float],
        Option(
            "--goodput",
            "Objectives in milliseconds, as in ttft:500 ttfot:800 tpot:50 e2el:5000.",
            panel=OUTPUT,
            unit="METRIC:MS",
            repeat=True,
            parse=parse_goodput,
        ),
    ] = dataclasses.field(default_factory=dict)
    metric_percentiles: Annotated[tuple[float, ...], MetricPercentiles] = ()
    threshold: Annotated[
        tuple[str, ...],
        Option(
            "--threshold",
            "Exit with 99 unless the summary meets this condition, as in 'p99_ttft_ms<=500'; repeat.",
            panel=OUTPUT,
            unit="CONDITION",
        ),
    ] = ()
    max_failures: Annotated[str, MAX_FAILURES] = "1%"
    store_texts: Annotated[
        bool, Option("--store-texts", "Record prompts (texts or token ids) and completions.", panel=OUTPUT)
    ] = False
    label: Annotated[str, Option("--label", "Name of the run.", panel=OUTPUT, unit="TEXT")] = ""
    metadata: Annotated[
        Mapping[str, str],
        Option(
            "--metadata",
            "Pair to store with the run; repeat.",
            panel=OUTPUT,
            unit="KEY=VALUE",
            repeat=True,
            parse=parse_metadata,
        ),
    ] = dataclasses.field(default_factory=dict)


@options_class
class DisplayOptions:
    """How the dashboard looks."""

    theme: Annotated[
        str,
        Option(
            "--theme",
            "dark, light, contrast, ansi or mono.",
            panel=OUTPUT,
            unit="NAME",
            default="the last one chosen, else by the terminal",
            complete=completions.themes,
        ),
    ] = ""
    reduced_motion: Annotated[
        bool, Option("--reduced-motion", "Redraw once a second, without animations.", panel=OUTPUT)
    ] = False


@options_class
class WebOptions:
    """Where the dashboard is served as a web page, if it is."""

    web: Annotated[bool, Option("--web", "Serve the dashboard to a browser (needs servetop[web]).", panel=OUTPUT)] = (
        False
    )
    web_host: Annotated[
        str,
        Option(
            "--web-host",
            "Address to serve the page at; 0.0.0.0 for all addresses of this machine. Not encrypted.",
            panel=OUTPUT,
            unit="ADDRESS",
        ),
    ] = "127.0.0.1"
    web_port: Annotated[
        int, Option("--web-port", "Port to serve the page at.", panel=OUTPUT, minimum=1, maximum=65535)
    ] = 8765
    web_steer: Annotated[
        bool,
        Option(
            "--web-steer",
            "Allow pages to control the run and to rename and delete recordings.",
            panel=OUTPUT,
        ),
    ] = False
