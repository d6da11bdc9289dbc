"""The options that say how a run is judged, recorded and shown."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import (
    parse_command,
    parse_goodput,
    parse_max_failures,
    parse_metadata,
    parse_percentiles,
    parse_prices,
)

output_option = partial(Option, panel="Recording and output")

MetricPercentiles = output_option(
    "--metric-percentiles",
    "Percentiles of the summary, as in 50,90,95,99,99.9; 50, 90, 95 and 99 are always included.",
    unit="LIST",
    parse=parse_percentiles,
)
PRICE = output_option(
    "--price",
    "What the server costs, as in 2.5/h or 2.5/gpu/h; a second one, per hour or per million input:cached:output tokens "
    "as in 3:0.3:15/Mtok, for the break-even.",
    unit="PRICE",
    repeat=True,
    parse=parse_prices,
)
MAX_FAILURES = output_option(
    "--max-failures",
    "Exit with 1 if more requests fail: a number or a share, as in 10, 2% or 0.02.",
    unit="COUNT|SHARE",
    parse=parse_max_failures,
)
AsJson = Annotated[bool, Option("--json", "Print JSON.", brief="Print JSON.")]


@options_class
class ResultOptions:
    """How the results of a run are judged, and what is kept with them."""

    goodput: Annotated[
        Mapping[str, float],
        output_option(
            "--goodput",
            "Objectives in milliseconds, as in ttft:500 ttfot:800 tpot:50 e2el:5000.",
            brief="Objectives: ttft:500 tpot:50.",
            unit="METRIC:MS",
            repeat=True,
            parse=parse_goodput,
        ),
    ] = dataclasses.field(default_factory=dict)
    metric_percentiles: Annotated[tuple[float, ...], MetricPercentiles] = ()
    threshold: Annotated[
        tuple[str, ...],
        output_option(
            "--threshold",
            "Exit with 99 unless the summary meets this condition, as in 'p99_ttft_ms<=500'; repeat.",
            unit="CONDITION",
        ),
    ] = ()
    price: Annotated[tuple[str, ...], PRICE] = ()
    max_failures: Annotated[str, MAX_FAILURES] = "1%"
    store_texts: Annotated[
        bool, output_option("--store-texts", "Record prompts (texts or token ids) and completions.")
    ] = False
    label: Annotated[str, output_option("--label", "Name of the run.", unit="TEXT")] = ""
    metadata: Annotated[
        Mapping[str, str],
        output_option(
            "--metadata", "Pair to store with the run; repeat.", unit="KEY=VALUE", repeat=True, parse=parse_metadata
        ),
    ] = dataclasses.field(default_factory=dict)


@options_class
class DisplayOptions:
    """How the dashboard looks."""

    theme: Annotated[
        str,
        output_option(
            "--theme",
            "dark, light, contrast, ansi or mono.",
            unit="NAME",
            default="the last one chosen, else by the terminal",
            complete=completions.themes,
        ),
    ] = ""
    against: Annotated[
        str,
        output_option(
            "--against",
            "Recording to compare with on the screen: its lines behind those of the run, and the differences.",
            unit="FILE|latest",
            complete=completions.recordings,
        ),
    ] = ""
    reduced_motion: Annotated[bool, output_option("--reduced-motion", "Redraw once a second, without animations.")] = (
        False
    )


@options_class
class ExporterOptions:
    """Where the metrics of a run or a watch are served while it lasts, if they are."""

    prometheus_port: Annotated[
        int | None,
        output_option(
            "--prometheus-port",
            "Serve all that is measured at this port, for Prometheus; 0 for a free one, which is printed.",
            default="not served",
            minimum=0,
            maximum=65535,
        ),
    ] = None
    prometheus_host: Annotated[
        str,
        output_option(
            "--prometheus-host",
            "Address to serve the metrics at; 0.0.0.0 for all addresses of this machine. Not encrypted.",
            unit="ADDRESS",
        ),
    ] = "127.0.0.1"
    otlp_endpoint: Annotated[
        str,
        output_option(
            "--otlp-endpoint",
            "Push all that is measured to this OpenTelemetry collector by OTLP over HTTP (JSON), every 5 s.",
            unit="URL",
        ),
    ] = ""


@options_class
class OutputOptions:
    """Where a run is recorded and shown."""

    record: Annotated[
        Path | None,
        output_option(
            "--record",
            "File to record to.",
            brief="File to record to.",
            unit="FILE",
            default="a new file in the recordings folder",
        ),
    ] = None
    headless: Annotated[
        bool, output_option("--headless", "Run without the dashboard.", brief="Run without the dashboard.")
    ] = False
    detach: Annotated[bool, output_option("--detach", "Run in the background and print how to find it again.")] = False
    as_json: Annotated[
        bool,
        output_option(
            "--json",
            "Print only the summary, as JSON (implies --headless).",
            brief="Print only the summary, as JSON.",
        ),
    ] = False
    on_finish: Annotated[
        tuple[str, ...],
        output_option(
            "--on-finish",
            "Run this command, without a shell, when the recording is closed; SERVETOP_RECORDING, SERVETOP_EXIT_CODE "
            "and SERVETOP_HEADLINE are in its environment.",
            unit="COMMAND",
            parse=parse_command,
        ),
    ] = ()
    exporter: ExporterOptions = ExporterOptions()
    display: DisplayOptions = DisplayOptions()


@options_class
class WebOptions:
    """Where the dashboard is served as a web page, if it is."""

    web: Annotated[bool, output_option("--web", "Serve the dashboard to a browser (needs servetop[web]).")] = False
    web_host: Annotated[
        str,
        output_option(
            "--web-host",
            "Address to serve the page at; 0.0.0.0 for all addresses of this machine. Not encrypted.",
            unit="ADDRESS",
        ),
    ] = "127.0.0.1"
    web_port: Annotated[int, output_option("--web-port", "Port to serve the page at.", minimum=1, maximum=65535)] = 8765
    web_steer: Annotated[
        bool, output_option("--web-steer", "Allow pages to control the run and to rename and delete recordings.")
    ] = False
