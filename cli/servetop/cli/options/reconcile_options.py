"""The options of `servetop reconcile`."""

from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.output_options import AsJson


@options_class
class ReconcileOptions:
    """The options of `servetop reconcile`."""

    a: Annotated[
        str,
        Argument("A", "A result of any load generator, or a recording.", complete=completions.recordings),
    ]
    b: Annotated[str, Argument("B", "Another one, of the same server.", complete=completions.recordings)]
    truth_a: Annotated[
        str | None,
        Option(
            "--truth-a",
            "The server's own account of A's requests, as servetop audit --record writes it.",
            unit="FILE",
            complete=completions.recordings,
        ),
    ] = None
    truth_b: Annotated[
        str | None,
        Option("--truth-b", "That of B's requests.", unit="FILE", complete=completions.recordings),
    ] = None
    as_json: AsJson = False
