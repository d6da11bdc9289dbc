"""The options of `servetop compare`."""

from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.output_options import AsJson
from servetop.cli.options.parsers import parse_fraction, parse_fractions

StartSpreadShare = Annotated[
    float | None,
    Option(
        "--start-spread",
        "Assumed standard deviation between engine starts: a minimum with two to four starts, ignored from five on.",
        unit="SHARE",
        default="5%, and 20% for latencies; 1% on GPUs; 0 for virtual time",
        parse=parse_fraction,
    ),
]
MARGIN = Option(
    "--margin",
    "Smallest difference of a metric to look for, as in output_throughput=1%; repeat.",
    unit="KEY=SHARE",
    default="2% of throughput and means, 5% of p50 and p90, 10% of p99",
    repeat=True,
    parse=parse_fractions,
)


@options_class
class CompareOptions:
    """The options of `servetop compare`."""

    recordings: Annotated[
        tuple[str, ...],
        Argument(
            "RECORDING...",
            "Two configurations or more; each is a recording (latest, a name or a file), several of them with "
            "commas between, or a folder of them.",
            complete=completions.recordings,
        ),
    ]
    metric: Annotated[
        tuple[str, ...],
        Option("--metric", "Compare only this metric, as in p99_ttft_ms; repeat.", unit="KEY", default="all"),
    ] = ()
    margin: Annotated[dict[str, float] | None, MARGIN] = None
    start_spread: StartSpreadShare = None
    price: Annotated[
        tuple[str, ...],
        Option(
            "--price",
            "What the servers cost, as in 2.5/h or 2.5/gpu/h: one price for all, or one for each in order.",
            unit="PRICE",
            default="the recorded price",
        ),
    ] = ()
    anyway: Annotated[bool, Option("--anyway", "Compare unlike workloads, with a warning.")] = False
    markdown: Annotated[bool, Option("--markdown", "Print Markdown, as for a pull request.")] = False
    as_json: AsJson = False
