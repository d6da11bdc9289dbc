"""The options of `servetop check`."""

from pathlib import Path
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.compare_options import StartSpreadShare
from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.output_options import AsJson


@options_class
class CheckOptions:
    """What to check, against what, and where to report it."""

    files: Annotated[
        tuple[str, ...],
        Argument(
            "RUN|latest...",
            "Recordings, or folders of them; several are starts of one configuration.",
            complete=completions.recordings,
        ),
    ]
    baseline: Annotated[
        tuple[str, ...],
        Option(
            "--baseline",
            "Recording, or folder of recordings, to compare with; repeat for several starts.",
            unit="RECORDING",
            complete=completions.recordings,
        ),
    ] = ()
    max_regression: Annotated[
        tuple[str, ...],
        Option(
            "--max-regression",
            "How much worse a metric may be than in the baseline, as in output_throughput=2%, p99_ttft_ms=50ms or "
            "stages[2].p99_ttft_ms=10%; repeat.",
            unit="METRIC=LIMIT",
        ),
    ] = ()
    threshold: Annotated[
        tuple[str, ...],
        Option(
            "--threshold",
            "Condition on the summary, as in 'p99_ttft_ms<=500' or 'stages[2].steady.p99_ttft_ms<500'; repeat.",
            unit="CONDITION",
        ),
    ] = ()
    rule: Annotated[
        tuple[str, ...], Option("--rule", "Apply only this rule to the recordings; repeat.", unit="NAME")
    ] = ()
    ignore: Annotated[tuple[str, ...], Option("--ignore", "Do not apply this rule; repeat.", unit="NAME")] = ()
    start_spread: StartSpreadShare = None
    anyway: Annotated[bool, Option("--anyway", "Compare recordings of different workloads.")] = False
    as_json: AsJson = False
    junit: Annotated[Path | None, Option("--junit", "Write JUnit XML to this file.", unit="FILE")] = None
    github: Annotated[bool, Option("--github", "Print annotations for GitHub Actions.")] = False
    step_summary: Annotated[
        Path | None,
        Option(
            "--step-summary",
            "Append Markdown to this file.",
            unit="FILE",
            default="the file named by GITHUB_STEP_SUMMARY",
        ),
    ] = None
