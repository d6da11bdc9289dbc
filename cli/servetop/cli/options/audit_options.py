"""The options of `servetop audit`."""

from pathlib import Path
from typing import Annotated

from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.output_options import AsJson
from servetop.cli.options.serve_options import EmulatedOptions, ServedOptions
from servetop.cli.options.tool_options import IMPORT_FORMATS
from servetop.core.units import parse_seconds

_MAX_PORT = 65535


@options_class
class AuditOptions:
    """The options of `servetop audit`."""

    result: Annotated[
        Path | None,
        Option("--result", "File with the client's own result, to compare.", unit="FILE", brief="The client's result."),
    ] = None
    format: Annotated[
        str | None,
        Option(
            "--format",
            f"Format of the result: {', '.join(IMPORT_FORMATS)}.",
            unit="FORMAT",
            default="by its content",
            choices=IMPORT_FORMATS,
            of_plug_ins="servetop.importers",
        ),
    ] = None
    record: Annotated[
        Path | None,
        Option(
            "--record",
            "Recording to write of what the server saw, for servetop reconcile.",
            unit="FILE",
            brief="Record what the server saw.",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        Option(
            "--timeout",
            "End the client after this time: seconds, or 90s, 5m, 1h.",
            unit="TIME",
            parse=parse_seconds,
            default="never",
        ),
    ] = None
    as_json: AsJson = False
    host: Annotated[
        str, Option("--host", "Address at which the simulator listens.", unit="ADDRESS", panel="Server")
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Option("--port", "Its port; 0 for a free one.", unit="PORT", minimum=0, maximum=_MAX_PORT, panel="Server"),
    ] = 0
    served_model_name: Annotated[
        str,
        Option(
            "--served-model-name", "Name that the client uses.", unit="NAME", default="--model as given", panel="Server"
        ),
    ] = ""
    served: ServedOptions = ServedOptions()
    emulated: EmulatedOptions = EmulatedOptions()
