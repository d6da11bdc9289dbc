"""The options of the commands that list, print or check."""

from pathlib import Path
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.output_options import PRICE, AsJson, MetricPercentiles
from servetop.cli.options.run_options import RECORDING

EXPORT_FORMATS = ("csv", "jsonl", "parquet", "vllm", "aiperf", "llm-d", "guidellm", "perfetto", "openmetrics")
IMPORT_FORMATS = ("vllm", "aiperf", "sglang", "guidellm", "inference-perf", "llmperf", "genai-perf")
EXPORT_TABLES = ("requests", "ticks", "stages", "engine", "gpu")
STANDARD_OUTPUT = Path("-")
"""The name that stands for standard output."""
PLOT_METRICS = ("load", "tokens", "ttft", "tpot", "queue", "kv", "itl", "e2el", "gpu", "latency")


@options_class
class JsonOptions:
    """The options of a command that prints a table, or JSON."""

    as_json: AsJson = False


@options_class
class DatasetOptions:
    """The options of `servetop dataset`."""

    path: Annotated[str, Argument("FILE|NAME", "A file or folder, or a dataset that ships with servetop.")]
    dataset_name: Annotated[
        str,
        Option(
            "--dataset-name",
            "How to read the file.",
            unit="NAME",
            default="by its content",
            complete=completions.datasets,
            of_plug_ins="servetop.datasets",
        ),
    ] = ""
    dataset_column: Annotated[
        str, Option("--dataset-column", "Column with the prompts.", unit="COLUMN", default="prompt")
    ] = ""
    rows: Annotated[int, Option("--rows", "Rows to print.", unit="ROWS", minimum=0)] = 5
    as_json: AsJson = False


@options_class
class StopOptions:
    """The options of `servetop stop`."""

    run: Annotated[str, Argument("RUN|latest", "The id of a run, or its beginning, as servetop ps lists it.")]
    now: Annotated[bool, Option("--now", "Cancel the requests in flight.")] = False
    timeout: Annotated[
        float, Option("--timeout", "How long to wait for the run to end.", unit="SECONDS", minimum=0)
    ] = 300.0


@options_class
class ManifestOptions:
    """The options of `servetop manifest`."""

    file: Annotated[str, RECORDING] = "latest"
    as_json: AsJson = False


@options_class
class SummaryOptions:
    """The options of `servetop summary`."""

    file: Annotated[str, RECORDING] = "latest"
    metric_percentiles: Annotated[tuple[float, ...] | None, MetricPercentiles] = None
    price: Annotated[tuple[str, ...], PRICE] = ()
    story: Annotated[bool, Option("--story", "Print only what limited the run, when and why, and what to try.")] = False
    markdown: Annotated[
        bool, Option("--markdown", "Print Markdown for a ticket; with --story only that and the tables of a sweep.")
    ] = False
    since: Annotated[
        str | None,
        Option(
            "--since",
            "With --story, of a watch: only from this time on, as 14:00 or 2026-11-30T14:00, or in the last 1h.",
            unit="TIME",
        ),
    ] = None
    until: Annotated[
        str | None, Option("--until", "With --story, of a watch: only until this time, as --since.", unit="TIME")
    ] = None
    as_json: AsJson = False


@options_class
class ReportOptions:
    """The options of `servetop report`."""

    files: Annotated[
        tuple[str, ...],
        Argument(
            "FILE|latest|sample",
            "A recording, or two to compare; latest is the newest one, sample one that ships with servetop.",
            complete=completions.recordings,
        ),
    ] = ()
    output: Annotated[
        Path | None,
        Option(
            "-o --output",
            "File to write; - is standard output.",
            unit="FILE",
            default="the recording's name with the suffix, here",
        ),
    ] = None
    format: Annotated[
        str | None,
        Option(
            "--format",
            "html: a page that works offline; md: Markdown, as for a ticket or a pull request; svg, png: one picture.",
            default="by the suffix of --output, else html",
            choices=("html", "md", "svg", "png"),
        ),
    ] = None
    price: Annotated[tuple[str, ...], PRICE] = ()
    anyway: Annotated[bool, Option("--anyway", "Compare unlike workloads, with a warning.")] = False


@options_class
class PlotOptions:
    """The options of `servetop plot`."""

    file: Annotated[str, RECORDING] = "latest"
    metric: Annotated[
        tuple[str, ...],
        Option(
            "--metric",
            "Draw only this chart; repeat.",
            unit="NAME",
            default="load, tokens, ttft, itl, queue, kv and latency, as far as they were recorded",
            choices=PLOT_METRICS,
        ),
    ] = ()
    width: Annotated[
        int | None,
        Option(
            "--width",
            "Columns of each chart.",
            unit="COLUMNS",
            default="those of the terminal up to 120; 80 in a file or pipe",
            minimum=40,
            maximum=1000,
        ),
    ] = None


@options_class
class ExportOptions:
    """The options of `servetop export`."""

    file: Annotated[str, RECORDING] = "latest"
    format: Annotated[
        str,
        Option(
            "--format",
            f"Format to write: {', '.join(EXPORT_FORMATS)}.",
            unit="FORMAT",
            choices=EXPORT_FORMATS,
            of_plug_ins="servetop.exporters",
        ),
    ] = "csv"
    table: Annotated[
        str | None,
        Option(
            "--table",
            "What a row of csv, jsonl or parquet is.",
            unit="TABLE",
            default="requests",
            choices=EXPORT_TABLES,
        ),
    ] = None
    stage: Annotated[
        int | None,
        Option("--stage", "The only stage to write, where a file holds one.", unit="NUMBER", default="all", minimum=0),
    ] = None
    output: Annotated[
        Path | None,
        Option(
            "-o --output",
            "File to write, or folder for several; - is standard output.",
            unit="FILE",
            default="standard output",
        ),
    ] = None


@options_class
class ImportOptions:
    """The options of `servetop import`."""

    files: Annotated[tuple[str, ...], Argument("FILE...", "Results of other load generators; a recording each run.")]
    format: Annotated[
        str | None,
        Option(
            "--format",
            f"Format of the files: {', '.join(IMPORT_FORMATS)}.",
            unit="FORMAT",
            default="by their content",
            choices=IMPORT_FORMATS,
            of_plug_ins="servetop.importers",
        ),
    ] = None
    output: Annotated[
        Path | None,
        Option("-o --output", "Recording to write.", unit="FILE", default="a new file in the recordings folder"),
    ] = None


@options_class
class VerifyOptions:
    """The options of `servetop verify`."""

    files: Annotated[
        tuple[str, ...],
        Argument("FILE|latest...", "Recordings; latest is the newest one.", complete=completions.recordings),
    ]
    as_json: AsJson = False


@options_class
class ListOptions:
    """The options of `servetop ls`."""

    folder: Annotated[Path | None, Argument("FOLDER", "(default: the recordings folder)")] = None
    as_json: AsJson = False


@options_class
class EnginesOptions:
    """The options of `servetop engines`."""

    name: Annotated[
        str | None, Argument("NAME", "One engine, in detail. (default: all)", complete=completions.engines)
    ] = None
    as_json: AsJson = False
